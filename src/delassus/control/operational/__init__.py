"""Operational space: tasks, their inertia, and motions that achieve them."""
