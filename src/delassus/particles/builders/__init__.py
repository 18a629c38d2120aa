"""Builders of ropes, nets, cloth, chains, ribbons, blocks and towers."""
