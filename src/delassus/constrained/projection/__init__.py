"""Projection of configurations and velocities onto the constraints; impacts."""
