"""Reference solutions by external solvers, which are independent and slow; installed as an extra."""
