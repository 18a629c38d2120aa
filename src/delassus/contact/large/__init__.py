"""Contact problems with many rows, solved by NumPy over batches: nothing is compiled, whatever their size."""
