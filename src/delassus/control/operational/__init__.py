"""Operational space: tasks of a robot, their inertia, and motions that do what they ask for."""
