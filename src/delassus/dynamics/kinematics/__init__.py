"""Poses and velocities of bodies and frames, and the configuration manifold."""
