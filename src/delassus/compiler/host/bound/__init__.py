"""Kernels on arrays that are fixed beforehand: called in place, or many times in a row."""
