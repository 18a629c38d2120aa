"""Solvers for accelerations and constraint forces, one file each."""
