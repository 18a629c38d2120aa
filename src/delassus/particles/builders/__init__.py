"""Ropes, nets, cloth, chains, ribbons and towers from a few numbers."""
