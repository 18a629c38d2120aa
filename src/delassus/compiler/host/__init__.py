"""Compiled code in Python: kernels, ufuncs, threads, the cache."""
