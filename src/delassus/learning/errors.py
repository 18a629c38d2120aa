"""Errors of learning."""

from __future__ import annotations

from delassus.errors import BadArgument, DelassusError


class LearningError(BadArgument):
    """A task, policy or option that cannot be learnt with."""


class CheckpointError(DelassusError):
    """A checkpoint that cannot be read, written or used."""
