"""Sensors: what robots measure, computed by kernels from states and logs."""
