"""Operational space: tasks of a robot, their inertia, and motions that achieve them."""
