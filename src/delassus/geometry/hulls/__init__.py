"""Convex hulls of meshes: simplified to a bound, with tables of their faces, and how they touch a plane."""
