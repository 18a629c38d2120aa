"""Linear models of constrained robots, and linear-quadratic regulators."""
