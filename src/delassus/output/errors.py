"""Errors of trajectories."""

from __future__ import annotations

from delassus.errors import BadArgument, DelassusError


class TrajectoryError(BadArgument):
    """Invalid access to a trajectory."""


class TimeIndexError(TrajectoryError, IndexError):
    """A time index out of range; it ends a loop over a trajectory."""

    code = "index-out-of-range"


class NotRecorded(DelassusError, AttributeError):
    """A part that the run of a trajectory did not record; `hasattr` returns False for it."""

    code = "not-recorded"


class TrajectoryFileError(DelassusError, OSError):
    """A trajectory that cannot be written or read."""

    code = "unreadable-file"


class PlotError(DelassusError, ImportError):
    """Drawing without matplotlib."""

    code = "missing-package"
