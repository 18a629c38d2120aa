"""Whole-body control: a quadratic program for the torques of a robot with tasks, supports and limits."""
