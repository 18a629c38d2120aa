"""Utilities that all rooms share: argument checks, options, archives, memory limits."""
