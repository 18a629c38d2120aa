"""What results of a scene have in common: residuals and status of its rows, and views by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import real_array
from delassus.common.outcomes import Outcome
from delassus.constrained.solvers.status import Status
from delassus.contact.problems.checks import ContactProblemError
from delassus.step.scene import Scene

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RowOutcome(Outcome):
    """How the rows of a scene were solved, in one state or a batch.

    Attributes:
        scene: The robot, its contacts and its other rows.
        gap: (…, points) before the step [m], negative where bodies penetrate.
        residuals: (…, m) residuals of all rows [m/s, rad/s; per second for forces].
        iterations: (…) number of iterations.
        status: (…) values of `Status`.
    """

    status_type: ClassVar = Status

    scene: Scene
    gap: Array
    residuals: Array
    iterations: NDArray[np.int64]
    status: NDArray[np.int64]

    @property
    def residual(self) -> Any:
        """(…) the largest residual of a row."""
        return np.abs(self.residuals).max(-1) if self.scene.m else np.zeros(np.shape(self.status))

    def by_name(self, values: Array) -> Mapping[str, Array]:
        """Views of values (…, m) by the names of contacts, constraints and joints."""
        given: Array = real_array("values", values)
        m = self.scene.m
        if given.shape[-1:] != (m,):
            raise ContactProblemError(
                f"values have shape {given.shape}; their last axis must have length {m}, one value for each row.",
                code="wrong-shape",
            )
        return {name: given[..., rows] for name, rows in self.scene.row_mechanism.slices.items()}
