"""One time step of a robot on the ground, as one kernel."""
