"""Dynamics of mechanisms under constraints, one file an algorithm."""
