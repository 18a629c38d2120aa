"""Quadratic programs with linear rows and second-order cones, and a compiled proximal solver."""
