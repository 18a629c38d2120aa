"""Linear algebra of one state, on traced arrays and on NumPy arrays: factors, least squares, iterations."""
