"""NumPy functions on traced arrays: what a function computes becomes a graph."""
