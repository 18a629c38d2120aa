"""Convex hulls of meshes: simplification, tables of faces, contacts with a plane."""
