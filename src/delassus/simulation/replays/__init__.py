"""Replay of runs: recorded inputs, and environments that are simulated again from them."""
