"""How a solve ended, and what it found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.constraints.mechanism import Mechanism
from delassus.errors import Sentences


class Status(Sentences):
    """How a solve ended; `sentence` says it in words."""

    CONVERGED = 0, "All rows are met to the tolerance."
    LEAST_SQUARES = 1, "The rows cannot all be met; they are met in the least-squares sense."
    ITERATIONS = 2, "The iterations ended before the tolerance was met."
    RANK_LOSS = 3, "Some rows depend on others, so the forces are not unique; a method without rank needs them apart."
    NOT_FINITE = 4, "An input or a result is not a finite number."
    PRECISION = 5, "Rows are so nearly dependent that rounding decides whether they can be met; they are met in part."


@dataclass(frozen=True, eq=False)
class Solution:
    """Accelerations and forces of a mechanism, one state or a batch, and how good they are.

    Attributes:
        mechanism: What was solved.
        acceleration: (…, nv) [rad/s², m/s²].
        force: (…, m) [N, N·m], on the robot, in the axes of each constraint.
        residual: (…, m) J a + γ + C λ [m/s², rad/s²].
        iterations: (…) how many were made.
        status: (…) numbers of `Status`.
        imbalance: (…, nv) M a + c - tau - Jᵀ λ [N·m, N]: how well the equation of motion holds.
    """

    mechanism: Mechanism
    acceleration: NDArray[np.float64]
    force: NDArray[np.float64]
    residual: NDArray[np.float64]
    iterations: NDArray[np.int64]
    status: NDArray[np.int64]
    imbalance: NDArray[np.float64]

    @property
    def forces(self) -> Mapping[str, NDArray[np.float64]]:
        """Views of `force` by the names of the constraints."""
        return {name: self.force[..., rows] for name, rows in self.mechanism.slices.items()}

    @property
    def statuses(self) -> Any:
        """The status of one state, or an array of them."""
        return statuses_of(self.status)


def statuses_of(numbers: NDArray[np.int64]) -> Any:
    """The `Status` of one state, or an array of them."""
    found = np.vectorize(Status, otypes=[object])(numbers)
    return found.item() if found.ndim == 0 else found
