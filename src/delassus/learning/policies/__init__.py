"""Policies that come with this package, learnt on the tasks' own robots."""
