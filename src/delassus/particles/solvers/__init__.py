"""The system of a step, and solvers for it by name."""
