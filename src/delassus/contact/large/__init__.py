"""Contact problems with many rows, solved by NumPy over batches; what is compiled does not grow with their size, but for
sweeps of up to 44 contacts, which are."""
