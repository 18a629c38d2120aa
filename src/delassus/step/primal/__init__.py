"""Steps under MuJoCo's law of contact, solved for velocities: the least of a convex function, by Newton's method."""
