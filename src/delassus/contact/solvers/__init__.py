"""Solvers of contact problems: one file a method, and one place that chooses."""
