"""Linear algebra of one state, on traced and NumPy arrays: factorizations, least squares, iterative methods."""
