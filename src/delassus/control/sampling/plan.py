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
    """Controls from now on, over the horizon.

    Attributes:
        knots: (knots, nu) of the spline.
        controls: (horizon, nu) of each control period, within their limits.
        cost: What it costs from the state that it was improved for, NaN if that is not known.
        status: How it was found.
        time: When it begins [s].
        failed: How many samples had no cost.
        count: How often it was improved.
        seed: Of all random numbers; with `count` it says which come next.
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
        """(nu,) of the first control period."""
        first: Array = self.controls[0]
        return first

    def describe(self) -> str:
        """How it was found, in a sentence or several."""
        failed = f" {self.failed} samples had no cost." if self.failed else ""
        return f"{self.status.sentence}{failed}"
