"""Reactive control: tasks, supports and limits of a robot become a quadratic program, and that torques."""
