"""Errors of policies."""

from delassus.errors import BadArgument


class PolicyError(BadArgument):
    """An invalid policy, or a function of it that cannot be compiled."""
