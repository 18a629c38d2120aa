"""Elimination of joints and multipliers: sweeps and factors that several solvers use."""
