"""Errors of simulations, and a check of batch axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from delassus.errors import DelassusError
from delassus.step.selection.errors import SimulationError

__all__ = ["NoSuchItem", "RunError", "SimulationError", "StateFileError", "fits"]


class RunError(SimulationError):
    """A function of the user failed in a run, at a `time` [s]; `log` is the trajectory up to that time."""

    code = "function-failed"

    def __init__(self, sentence: str, time: float, *, code: str | None = None) -> None:
        super().__init__(sentence, code=code)
        self.time = time
        self.log: Any = None


class NoSuchItem(SimulationError, IndexError):
    """An index of an environment beyond those of a state, which ends a loop over a state."""

    code = "index-out-of-range"


class StateFileError(DelassusError, OSError):
    """A file of a state that could not be written or read."""

    code = "unreadable-file"


def fits(shape: tuple[int, ...], batch: tuple[int, ...]) -> bool:
    """Whether arrays with the batch axes `shape` broadcast to the batch axes `batch` of environments."""
    try:
        return np.broadcast_shapes(shape, batch) == batch
    except ValueError:
        return False
