"""How motions, torques and accelerations change with what they are computed from."""
