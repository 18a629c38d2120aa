"""Quadratic programs with linear rows and second-order cones, and a proximal solver that runs in lanes."""
