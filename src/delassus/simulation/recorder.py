"""States of a run, kept in arrays that are there from the beginning, time first."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.simulation.runner import Runner
from delassus.simulation.state import State
from delassus.simulation.step.measures import drift, energy
from delassus.simulation.trajectory import GroundTrajectory

KEPT: Final = ("time", "q", "v", "impulse", "contact", "residual", "status")


class Recorder:
    """A log in the making, of at most so many states; the first is that of the start."""

    def __init__(self, start: State, most: int) -> None:
        values = {name: np.asarray(getattr(start, name)) for name in KEPT}
        self.arrays = {name: np.empty((most, *x.shape), x.dtype) for name, x in values.items()}
        self.count, self.last = 0, start.count
        self.keep(start)

    def keep(self, state: State | Runner) -> None:
        """Copy a state."""
        for name, array in self.arrays.items():
            array[self.count] = getattr(state, name)
        self.count, self.last = self.count + 1, state.count

    def keep_last(self, state: State | Runner) -> None:
        """Copy a state unless it has been, as the last of a run that ends early."""
        if state.count != self.last:
            self.keep(state)

    def trajectory(self, mechanism: Mechanism, **others: Any) -> GroundTrajectory:
        """What has been kept, with energies and errors of constraints."""
        kept: dict[str, Any] = {name: array[: self.count] for name, array in self.arrays.items()}
        kept["energy"] = np.asarray(energy(mechanism.model, kept["q"], kept["v"]))
        kept["drift"] = drift(mechanism, kept["q"], kept["time"])
        return GroundTrajectory(**kept, **others)
