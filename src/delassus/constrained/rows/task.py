"""What all proximal methods start from: the rows of a mechanism in a state, and how each row is weighted.

Of all accelerations that meet the constraints as well as possible, the right one is nearest to the free motion in the
metric of M (Gauss). With multipliers λ this is

    M a + c = tau + Jᵀ λ,      J a + γ + C λ = 0,

C the compliance. The proximal methods add -E (λ - λ⁻) to the second equation, E = diag(ε) the `proximal` parameters
and λ⁻ the last iterate, which makes it solvable whatever the rank of J, and repeat. Written for λ,

    λ = keep λ⁻ - ρ (J a + γ),      ρ = 1/(ε + C),   keep = ε/(ε + C):

a penalty ρ on the residual of each row (1/ε without compliance), and the part of the last force that is kept (all of
it without compliance). A row that is switched off has ρ = keep = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy
from numpy.typing import NDArray

import delassus.numpy as np
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.constraints.mechanism.rows import Rows, right_hand_side, rows_in
from delassus.dynamics.tree.check import check_inertias

SIGNATURE: Final = "(nq),(nv),(nv)->(nv),(m)"
SINGLE: Final = (
    "penalties leave it five digits on a robot that stands on points, and two where a hand is welded or loops are near "
    "singular poses. Take prox_pv or prox_ltl, which have none."
)
"""What single precision means to the methods with penalties."""
ROW_INPUTS: Final = {"mask": "(m)", "force": "(m)", "acceleration": "(m)", "time": "()"}
"""Optional inputs of all methods: by row, not zero where it acts, the force to start from, its desired acceleration;
and the time that references move with."""


@dataclass(frozen=True)
class Task:
    """A mechanism in a state, its rows, their right-hand side k (m,) and their weights (m,)."""

    mechanism: Mechanism
    motions: LinkMotions
    tau: Any
    rows: Rows
    k: Any
    epsilon: NDArray[numpy.float64]
    rho: Any
    keep: Any
    on: Any
    """1 or 0 for each row; None if all rows act."""

    def active(self, values: Any) -> Any:
        """Values by row (m, …), those of rows that are switched off replaced by zeros."""
        if self.on is None:
            return values
        return values * self.on if np.ndim(values) == 1 else values * self.on[:, None]

    def update(self, before: Any, residual: Any) -> tuple[Any, Any]:
        """λ = keep λ⁻ - ρ r and J a + γ + C λ, of the residual r = J a + γ (m,)."""
        force = self.keep * before - self.rho * residual
        return force, residual + self.rows.compliance * force

    def first_force(self, force: Any) -> Any:
        """λ⁰ (m,): the force given, or zero."""
        return np.zeros(self.rows.m) if force is None else self.active(force)


def task_of(
    mechanism: Mechanism,
    q: Any,
    v: Any,
    tau: Any,
    epsilon: NDArray[numpy.float64],
    mask: Any = None,
    acceleration: Any = None,
    time: Any = None,
) -> Task:
    """The task of a method that is called with these arguments, ε (m,) one of them."""
    check_inertias(mechanism.model)
    motions = LinkMotions.of(mechanism.model, q, v, time)
    rows = rows_in(mechanism, motions)
    k = right_hand_side(mechanism, rows, motions, acceleration)
    rho, keep = 1.0 / (epsilon + rows.compliance), epsilon / (epsilon + rows.compliance)
    if mask is None:
        return Task(mechanism, motions, tau, rows, k, epsilon, rho, keep, None)
    on = switched(mask)
    return Task(mechanism, motions, tau, rows, k, epsilon, on * rho, on * keep, on)


def switched(mask: Any) -> Any:
    """1 where a mask (m,) is not zero, and 0 where it is; a NaN is neither, and spoils its state."""
    return np.where(np.isnan(mask), np.nan, np.where(mask != 0.0, 1.0, 0.0))
