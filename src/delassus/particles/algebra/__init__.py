"""Sparse matrices of 3 × 3 blocks with a fixed pattern, and their factors."""
