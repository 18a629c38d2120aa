"""Solvers of contact problems, one file each, and the choice among them."""
