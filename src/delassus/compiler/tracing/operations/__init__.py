"""The functions of NumPy on traced arrays."""
