"""Impacts: which contacts collide, and the velocities after the impact."""
