"""Predictive sampling: many controls are tried in simulation, and what costs least is done."""
