"""Shared parts of the tree algorithms: link poses, sweeps, sums over links."""
