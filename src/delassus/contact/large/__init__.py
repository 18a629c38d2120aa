"""Contact problems with many rows, solved by NumPy over batches; compiled code is for at most 44 contacts."""
