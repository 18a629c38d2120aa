"""One step of time of a robot on the ground, as one kernel."""
