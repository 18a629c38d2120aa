"""Runs that can be made again: what they receive, and items that are replayed."""
