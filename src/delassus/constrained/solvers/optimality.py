"""Residuals of the optimality conditions, recomputed from accelerations and forces alone."""

from __future__ import annotations

from typing import Any, Final

import delassus.numpy as np
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.delassus.proximal import proximal_rows
from delassus.constrained.rows.inputs import NO_INPUTS, ConstraintInputs, row_inputs, tolerance_input
from delassus.constrained.rows.problem import Problem
from delassus.constrained.rows.weights import Weighted
from delassus.constrained.solvers.equations import Equations
from delassus.constraints.mechanism.mechanism import Mechanism


class Check:
    """A result and its residuals.

    `left` (m,) is the infeasible residual of the rows, if known: rows with no other residual are solved in the
    least-squares sense. By default it is the residual, if that `is_least`.
    """

    def __init__(self, equations: Equations, a: Any, force: Any, tolerance: Any, infeasible: Any = None) -> None:
        self.residual = equations.residual(a, force)
        self.imbalance = equations.imbalance(a, force)
        allowed = tolerance * equations.row_scale(a) + equations.rounding(force)
        violated = np.abs(self.residual) > allowed
        self.met = ~np.any(violated)
        self.is_least = equations.is_least(
            np.where(violated, self.residual if infeasible is None else infeasible, 0.0), tolerance
        )
        self.least = self.is_least if infeasible is None else np.all(np.abs(self.residual - infeasible) <= allowed)
        self.balanced = equations.is_balanced(a, force, self.imbalance)

    @property
    def sound(self) -> Any:
        """Whether the result is a solution: rows met, or in the least-squares sense."""
        return self.balanced & (self.met | self.least)


ROWS: Final = row_inputs("force")
"""Arguments of a solution besides the state."""


@kernel("(nq),(nv),(nv),(nv),(m)->()", inputs={"rows": ROWS, "tolerance": tolerance_input(1e-10)})
def optimality(
    mechanism: Mechanism,
    q: Any,
    v: Any,
    tau: Any,
    a: Any,
    force: Any,
    *,
    rows: ConstraintInputs = NO_INPUTS,
    tolerance: Any = 1e-10,
) -> Floats:
    """1 if a (nv,) and λ (m,) are a solution to the tolerance, otherwise 0.

    The equation of motion holds at every joint, and the rows are met, or in the least-squares sense with weights 1/ε.
    """
    problem = Problem.of(mechanism, q, v, tau, rows.mask, rows.time, rows.targets)
    weighted = Weighted.of(problem, proximal_rows(mechanism, rows.proximal))
    return 1.0 * Check(Equations.of(mechanism, weighted), a, force, tolerance).sound
