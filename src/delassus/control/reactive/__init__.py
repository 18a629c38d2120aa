"""Reactive control: tasks, supports and limits of a robot become a quadratic programme, and that torques."""
