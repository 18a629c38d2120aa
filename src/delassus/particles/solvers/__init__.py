"""The system of a step, and its solvers by name."""
