"""Inverse dynamics of mechanisms: torques of actuators and forces of constraints that make a motion."""
