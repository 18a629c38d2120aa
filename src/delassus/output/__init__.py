"""Trajectories: what a motion or a simulation has left behind, with drawings, films and files."""
