"""Derivatives of kinematics and dynamics."""
