"""Torques and the accelerations that go with them."""
