"""Integrators on the configuration manifold, one file each, and `simulate_motion`."""
