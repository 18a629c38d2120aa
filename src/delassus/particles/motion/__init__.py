"""Time steps, equilibria, trajectories and drawings."""
