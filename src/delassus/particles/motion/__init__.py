"""Time steps, states of rest, trajectories, and their drawings."""
