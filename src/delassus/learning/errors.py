"""Errors of learning."""

from __future__ import annotations

from delassus.errors import BadArgument, DelassusError


class LearningError(BadArgument):
    """An invalid task, policy or option of learning."""


class CheckpointError(DelassusError):
    """A checkpoint that cannot be read, written or used."""
