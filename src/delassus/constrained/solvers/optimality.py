"""Whether accelerations and forces are a solution, computed anew from them alone."""

from __future__ import annotations

from typing import Any

from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.delassus.proximal import Proximal, proximal_rows
from delassus.constrained.rows.options import checked_tolerance
from delassus.constrained.rows.task import task_of
from delassus.constrained.solvers.equations import Equations
from delassus.constraints.mechanism.mechanism import Mechanism


class Check:
    """A result, held against the equations."""

    def __init__(self, equations: Equations, a: Any, force: Any, tolerance: float) -> None:
        self.residual = equations.residual(a, force)
        self.imbalance = equations.imbalance(a, force)
        scale = equations.row_scale(a, force)
        self.met = equations.met(self.residual, scale, tolerance)
        self.least = equations.is_least(self.residual, scale, tolerance)
        self.balanced = equations.is_balanced(a, force, self.imbalance)

    @property
    def sound(self) -> Any:
        """Whether it is what it claims to be: met, or of least squares."""
        return self.balanced & (self.met | self.least)


@kernel("(nq),(nv),(nv),(nv),(m)->()", inputs={"mask": "(m)", "acceleration": "(m)", "time": "()"})
def optimality(
    mechanism: Mechanism,
    q: Any,
    v: Any,
    tau: Any,
    a: Any,
    force: Any,
    *,
    tolerance: float = 1e-10,
    proximal: Proximal = None,
    mask: Any = None,
    acceleration: Any = None,
    time: Any = None,
) -> Floats:
    """1 if a (nv,) and λ (m,) are a solution to the tolerance, otherwise 0.

    The equation of motion holds at every joint, and the rows are met, or as nearly as they can be: in the sense of
    least squares, each weighted by its ε.
    """
    checked_tolerance(tolerance, 1e-10)
    epsilon = proximal_rows(mechanism, proximal)
    equations = Equations.of(task_of(mechanism, q, v, tau, epsilon, mask, acceleration, time))
    return 1.0 * Check(equations, a, force, tolerance).sound
