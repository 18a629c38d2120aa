"""What a trajectory cannot do."""

from __future__ import annotations

from delassus.errors import DelassusError


class TrajectoryError(DelassusError, ValueError):
    """Something that a trajectory has not."""


class NoSuchTime(TrajectoryError, IndexError):
    """A number of a time beyond those of a trajectory: it ends a loop over one."""


class NotRecorded(DelassusError, AttributeError):
    """A part that the run of a trajectory did not record; `hasattr` says False of it."""


class TrajectoryFileError(DelassusError, OSError):
    """A trajectory that could not be written or read."""


class PlotError(DelassusError, ImportError):
    """A drawing without what draws it."""
