"""`Plan`: controls over a horizon, and statistics of the search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from delassus.errors import Sentences

Array = NDArray[np.float64]


class PlanStatus(Sentences):
    """Status of a plan; `sentence` describes it.

    >>> all(status.sentence for status in dl.control.PlanStatus)
    True
    """

    IMPROVED = 0, "The plan costs less than the one before it."
    KEPT = 1, "The samples gave no plan that costs less; the one before is kept."
    NO_COST = 2, "No sample has a cost that is a finite number; the plan before is kept."
    NEW = 3, "The plan has not been improved yet."


@dataclass(frozen=True, eq=False)
class Plan:
    """Controls over the horizon.

    Attributes:
        knots: (knots, nu) knots of the spline.
        controls: (horizon, nu) controls of each period, within limits.
        cost: Cost from the state of the last improvement, NaN if unknown.
        status: Status of the search.
        time: Start time [s].
        failed: Number of samples without a finite cost.
        count: Number of improvements.
        seed: Seed of all random numbers; with `count` it determines the next ones.

    >>> sim = dl.Simulation(dl.load("cart_pole"), time_step=0.02, touching=())
    >>> planner = dl.control.Sampling(sim, lambda time, q, v, u: q[..., 0] ** 2, horizon=10, limits=5.0)
    >>> planner.start(control=[1.0, 0.0]).control
    array([1., 0.])
    """

    knots: Array
    controls: Array
    cost: float = float("nan")
    status: PlanStatus = PlanStatus.NEW
    time: float = 0.0
    failed: int = 0
    count: int = 0
    seed: int = 0

    @property
    def control(self) -> Array:
        """(nu,) control of the first period."""
        first: Array = self.controls[0]
        return first

    def describe(self) -> str:
        """Describe how it was found, in one or more sentences."""
        failed = f" {self.failed} samples had no cost." if self.failed else ""
        return f"{self.status.sentence}{failed}"
