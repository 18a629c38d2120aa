"""Configurations and velocities that meet the constraints; impacts."""
