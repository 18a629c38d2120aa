"""Ropes, nets, cloth, chains, ribbons, blocks and towers from a few numbers."""
