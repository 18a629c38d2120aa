"""Integrators on the manifold of configurations, one file a method, and the simulation that is made of them."""
