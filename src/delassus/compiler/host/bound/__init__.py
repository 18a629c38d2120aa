"""Kernels for fixed arrays: calls in place, and sequences of calls."""
