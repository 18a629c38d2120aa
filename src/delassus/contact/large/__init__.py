"""Contact problems with many rows, solved by NumPy over batches.

Compiled code does not grow with their size, but for sweeps of up to 44 contacts, which are compiled for a few sizes.
"""
