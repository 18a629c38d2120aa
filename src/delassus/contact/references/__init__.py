"""Reference solutions by external solvers: slow and independent; installed as an extra."""
