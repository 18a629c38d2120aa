"""Solutions of quadratic programs: residuals, active and violated rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import array_of_shape
from delassus.common.deprecated import OldName
from delassus.common.outcomes import Outcome
from delassus.control.qp.data import QPData
from delassus.control.qp.shape import QPError
from delassus.control.qp.status import QPStatus, describe_worst

Array = NDArray[np.float64]

BROKEN: Final = 1e-8
"""Residual above which rows count as violated, in their units."""


@dataclass(frozen=True, eq=False)
class QPOutcome(Outcome):
    """Result of a program, or of each of a batch.

    Attributes:
        multipliers: (…, equalities + rows + cone rows): H x + g + Aᵀ y + Cᵀ z + Kᵀ w = 0.
        primal: (…) the largest error of rows, in their units: violations, and multipliers that pull or act away from
            bounds.
        dual: (…) the largest element of H x + g + Aᵀ y + Cᵀ z + Kᵀ w.
        iterations: (…) number of Newton steps.
        status: (…) values of `QPStatus`.
    """

    status_type: ClassVar = QPStatus

    multipliers: Array
    primal: Array
    dual: Array
    iterations: NDArray[np.int64]
    status: NDArray[np.int64]

    @property
    def residual(self) -> Array:
        """(…) the larger of `primal` and `dual`."""
        return np.maximum(self.primal, self.dual)


@dataclass(frozen=True, eq=False)
class QPSolution(QPOutcome):
    """The solution of a program, or of each of a batch; see also `QPOutcome`.

    Attributes:
        qp: The program.
        x: (…, n).

    >>> solution = dl.control.QP(np.eye(2), [-1.0, 0.0]).solve()
    >>> solution.x.round(6)
    array([1., 0.])
    """

    qp: QPData
    x: Array

    @property
    def row_violation(self) -> Array:
        """(…, equalities + rows + cone rows) violation of each row by x, in its units; rows of a cone share its
        distance.
        """
        return self.qp.row_violation(self.x)

    programme = OldName("qp")
    missed = OldName("row_violation")

    @property
    def slack(self) -> Array:
        """(…, rows + cones) distance of x from the nearer bound of each row of C, and from the boundary of each
        cone.
        """
        return self.qp.slack(self.x)

    def active(self, tolerance: float = 1e-7) -> list[str]:
        """The names of the active rows of C and cones, for a single program."""
        tolerance = _check_tolerance(tolerance)
        slack = self._single(self.slack, "active")
        return [name for name, margin in zip(self.qp.bounded_names, slack, strict=True) if margin <= tolerance]

    def violated_rows(self, tolerance: float = BROKEN) -> dict[str, float]:
        """The violated rows of a single program with their violations, the largest first, in their units."""
        tolerance = _check_tolerance(tolerance)
        violations = self._single(self.row_violation, "violated_rows")
        found = {
            name: float(max(violations[rows], default=0.0))
            for name, rows in self.qp.places.items()
            if max(violations[rows], default=0.0) > tolerance
        }
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    broken = OldName("violated_rows")

    def describe(self) -> str:
        """Describe the result in a sentence or two; for a batch, the worst."""
        if np.ndim(self.status):
            return describe_worst(self.status, "QPs")
        worst = self.statuses
        violations = {} if worst is QPStatus.NOT_FINITE else self.violated_rows()
        if worst is QPStatus.SOLVED or not violations:
            return f"{worst.sentence} The largest error is {float(self.residual):.3g}."
        rows = [f"{name} by {amount:.3g}" for name, amount in violations.items()]
        suffix = f" and {len(rows) - 4} more" if len(rows) > 4 else ""
        return f"{worst.sentence} Broken: {', '.join(rows[:4])}{suffix}."

    def _single(self, values: Array, label: str) -> Array:
        if values.ndim > 1:
            raise QPError(
                f"{label} takes the solution of one QP, and this is a batch {values.shape[:-1]}: select one with "
                "item(…).",
                code="wrong-shape",
            )
        return values

    def item(self, *index: int) -> QPSolution:
        """The solution of one program of a batch."""
        names = ("multipliers", "primal", "dual", "iterations", "status", "x")
        return QPSolution(**{name: getattr(self, name)[index] for name in names}, qp=self.qp.item(*index))


def _check_tolerance(tolerance: Any) -> float:
    return float(array_of_shape("tolerance", tolerance, (), "one number"))
