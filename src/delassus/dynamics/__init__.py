"""Dynamics of trees, one file an algorithm."""
