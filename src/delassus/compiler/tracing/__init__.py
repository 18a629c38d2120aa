"""Tracing: records what a NumPy function computes as a graph."""
