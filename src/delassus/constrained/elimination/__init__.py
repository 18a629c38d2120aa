"""Eliminating joints and multipliers: the sweeps and factors that solvers share."""
