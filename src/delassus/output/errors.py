"""Errors of trajectories."""

from __future__ import annotations

from delassus.errors import BadArgument, DelassusError


class TrajectoryError(BadArgument):
    """Something that a trajectory has not."""


class TimeIndexError(TrajectoryError, IndexError):
    """A number of a time beyond those of a trajectory: it ends a loop over one."""

    code = "index-out-of-range"


class NotRecorded(DelassusError, AttributeError):
    """A part that the run of a trajectory did not record; `hasattr` says False of it."""

    code = "not-recorded"


class TrajectoryFileError(DelassusError, OSError):
    """A trajectory that could not be written or read."""

    code = "unreadable-file"


class PlotError(DelassusError, ImportError):
    """A drawing without what draws it."""

    code = "missing-package"
