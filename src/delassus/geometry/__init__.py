"""Collision detection inside kernels: gaps, contact points and normals."""
