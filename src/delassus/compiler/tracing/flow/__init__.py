"""Loops and branches while a function is traced."""
