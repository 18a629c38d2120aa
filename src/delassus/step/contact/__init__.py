"""Robots in contact, for users: a step of time, accelerations, and the forces behind a motion."""
