"""The blends of a step: how implicit forces and positions are."""
