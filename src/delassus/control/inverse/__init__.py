"""Inverse dynamics of mechanisms: actuator torques and constraint forces for a motion."""
