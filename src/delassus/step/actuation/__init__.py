"""What drives joints: motors, servos, springs and dampers, as forces and as what resists the joint."""
