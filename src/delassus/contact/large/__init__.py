"""Contact problems with many rows, solved by NumPy over batches; compiled parts do not grow beyond 44 contacts."""
