"""Kernels bound to fixed arrays: called in place, or many times in a row."""
