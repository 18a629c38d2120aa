"""Convex hulls of vertices: their faces and the tables that kernels read."""
