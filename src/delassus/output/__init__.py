"""Trajectories: results of motions and simulations, with plots, films and files."""
