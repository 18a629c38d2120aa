"""Accelerations and forces: one file a solver."""
