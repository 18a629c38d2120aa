"""Robots in contact: a time step, accelerations, and inverse dynamics."""
