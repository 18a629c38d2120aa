"""Predictive sampling: simulates many control sequences and applies the one of lowest cost."""
