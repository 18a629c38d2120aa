"""The problem that all methods solve: a robot in a state, its forces, and the rows of its constraints.

Of all accelerations that satisfy the constraints as well as possible, the solution is nearest to the free motion in the
metric of M (Gauss). With multipliers λ this is

    M a + c = tau + Jᵀ λ,      J a + γ + C λ = 0,

C is the compliance. Methods differ in how they solve it and in their weights (see `weights`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.mechanism import Mechanism, refuse_unilateral
from delassus.constraints.mechanism.rows import OWN, Rows, RowTargets, right_hand_side, rows_in
from delassus.dynamics.tree.check import check_inertias
from delassus.model.model import Model


@dataclass(frozen=True)
class Problem:
    """Rows at a state; λ acts in both directions.

    Attributes:
        motions: The robot and the motion of its links.
        tau: Generalized forces (nv,).
        rows: The rows of the constraints.
        k: Right-hand side of the rows (m,): their target accelerations.
        on: 1 or 0 for each row (m,); None if all rows are active.
        targets: Targets that determine k in place of the constraints' own.
    """

    motions: LinkMotions
    tau: Any
    rows: Rows
    k: Any
    on: Any = None
    targets: RowTargets = OWN

    @classmethod
    def of(
        cls,
        mechanism: Mechanism,
        q: Any,
        v: Any,
        tau: Any,
        mask: Any = None,
        time: Any = None,
        targets: RowTargets = OWN,
    ) -> Problem:
        """The problem of a mechanism; `mask` (m,) is nonzero for active rows."""
        check_inertias(mechanism.model)
        refuse_unilateral(mechanism, "constrained dynamics")
        motions = LinkMotions.of(mechanism.model, q, v, time)
        rows = rows_in(mechanism, motions)
        k = right_hand_side(mechanism, rows, motions, targets)
        return cls(motions, tau, rows, k, None if mask is None else switch_factors(mask), targets)

    @property
    def model(self) -> Model:
        """The robot of the mechanism."""
        return self.motions.model

    def active(self, values: Any) -> Any:
        """Values by row (m, …), with zeros for inactive rows."""
        if self.on is None:
            return values
        return values * self.on if np.ndim(values) == 1 else values * self.on[:, None]

    def first_force(self, force: Any) -> Any:
        """λ⁰ (m,): the given force, or zero."""
        return np.zeros(self.rows.m) if force is None else self.active(force)


def switch_factors(mask: Any) -> Any:
    """1 where a mask (m,) is nonzero, and 0 where it is zero; NaN propagates to its state."""
    return np.where(np.isnan(mask), np.nan, np.where(mask != 0.0, 1.0, 0.0))
