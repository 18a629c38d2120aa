"""`State`: all that a simulation needs to go on, to the bit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from delassus.stepping.marks import Mark, described

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class State:
    """One item or a batch of them, at a time.

    Attributes:
        q: (…, nq) configurations [rad, m].
        v: (…, nv) velocities [rad/s, m/s].
        time: [s].
        impulse: (…, m) impulses of the last step of time [N·s, N·m·s], from which the next solve starts: t1, t2, n of
            each contact slot (and moments about n, t1, t2 where there is torsional or rolling friction), then
            constraints, joint limits, dry friction.
        contact: (…, slots) numbers of the candidates that have the slots.
        residual: (…) the largest residual of a row of the contact problem [m/s].
        status: (…) marks that add up, see `Mark`; zero if all went well.
        count: How many control periods have been simulated.
        seed: Of the stream of random numbers, for controllers that draw some: with `count`, they go on where they were.
    """

    q: Array
    v: Array
    time: float
    impulse: Array
    contact: Array
    residual: Array
    status: NDArray[np.int64]
    count: int = 0
    seed: int = 0

    def describe(self) -> str:
        """What happened, in a sentence or several."""
        return described(self.status)


def is_alive(status: NDArray[np.int64]) -> Array:
    """(…) 1.0, and 0.0 for items that are frozen."""
    return np.where(status & int(Mark.FROZEN), 0.0, 1.0)
