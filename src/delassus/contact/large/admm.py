"""ADMM over a batch in NumPy: the iteration of `solvers.admm`, with a penalty for each problem.

Eigenvectors of dense matrices, or the recursion of an operator, serve all penalties, so that ρ may change at any time.
`Penalties` has tuned rules for both cases.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from delassus.contact.large.progress import Best, Budget
from delassus.contact.large.rows import Array, Rows
from delassus.contact.solvers.admm import (
    APART,
    ETA,
    LARGEST_POWER,
    PATIENCE,
    POWER,
    STEP,
    Iterates,
    admm_step,
    disagreements,
)
from delassus.contact.solvers.registry import register_solver
from delassus.contact.systems.protocol import BATCH, SHIFT

_HOPEFUL: Final = 3.0
"""The error is computed if an estimate of it is below this multiple of the tolerance."""


@dataclass(frozen=True)
class Penalties:
    """Rules for the penalty ρ (B, 1).

    Attributes:
        first: (B, 1) initial ρ.
        factor: (B, 1) factor of an increase or decrease.
        least, most: (B, 1) bounds.
        apart: ρ changes when the ratio of primal and dual residuals exceeds this, or its inverse.
        patience: Minimum number of iterations between changes.
        looks: Number of iterations between checks of the error, each of which costs a product with G.
    """

    first: Array
    factor: Array
    least: Array
    most: Array
    apart: tuple[float, float]
    patience: float
    looks: int

    @classmethod
    def of_matrix(cls, largest: Array) -> Penalties:
        """For matrices with the largest eigenvalues L (B, 1): ρ = √(ηL) (L/η)^p, p of `solvers.admm`."""
        largest = np.maximum(largest, ETA)
        middle, ratio = np.sqrt(ETA * largest), largest / ETA
        return cls(
            middle * ratio**POWER, ratio**STEP, middle, middle * ratio**LARGEST_POWER, (APART, APART), PATIENCE, 1
        )

    @classmethod
    def of_operator(cls, count: int) -> Penalties:
        """For operators, for which computing the largest eigenvalue would cost products.

        For sheets with friction, the best penalties have a primal residual of about ten times the dual one.
        """
        one = np.ones((count, 1))
        return cls(0.1 * one, 2.0 * one, 1e-4 * one, 1e3 * one, (50.0, 5.0), 20.0, 3)

    def __getitem__(self, problems: Any) -> Penalties:
        first, factor, least, most = (x[problems] for x in (self.first, self.factor, self.least, self.most))
        return Penalties(first, factor, least, most, self.apart, self.patience, self.looks)


@register_solver("admm", needs={BATCH, SHIFT}, traced=False)
def admm(rows: Rows, best: Best, budget: Budget, most: int | None = None) -> None:
    """Improve the best impulses by at most `most` iterations."""
    live = best.open(budget)
    if not len(live):
        return
    live = live if rows.selectable else np.arange(len(best.error))
    active = rows[live]
    factors = active.factor_shifted()
    rules = Penalties.of_matrix(factors.largest) if active.selectable else Penalties.of_operator(len(live))
    y = best.impulse[live].copy()
    last, rho, age, count = (
        Iterates(y, y, active.corrected_velocity(active.velocity(y))),
        rules.first,
        np.zeros((len(live), 1)),
        0,
    )
    while len(live) and count != most:
        count += 1
        now = admm_step(active, partial(factors.solve, shift=ETA + rho), last, rho, count - 1)
        primal, dual = (x.max(-1, keepdims=True) for x in disagreements(last, now, rho))
        open_ = np.isin(live, best.open(budget))
        best.count[live[open_]] += 1
        final = count == most or bool((best.count[live[open_]] >= budget.iterations).any())
        if final or _looks(active, last, now, rho, rules, count, best.error[live], budget):
            best.keep(live, now.y, active.error(now.y, active.velocity(now.y)))
        age += 1
        change = np.where(primal > rules.apart[0] * dual, 1.0, np.where(dual > rules.apart[1] * primal, -1.0, 0.0))
        change = np.where(age >= rules.patience, change, 0.0)
        rho = np.clip(rho * rules.factor**change, rules.least, rules.most)
        age, last = np.where(change == 0.0, age, 0.0), now
        going = np.isin(live, best.open(budget))
        if not going.any():
            return
        if rows.selectable and not going.all():
            live, active, factors, rules = live[going], active[np.flatnonzero(going)], factors[going], rules[going]
            last, rho, age = Iterates(*(x[going] for x in last)), rho[going], age[going]


def _looks(
    rows: Rows, last: Iterates, now: Iterates, rho: Array, rules: Penalties, count: int, error: Array, budget: Budget
) -> bool:
    """Whether to compute the error, which costs a product with G: at regular intervals, if an estimate is near the
    tolerance.

    The estimate uses the velocities at x, which are near those at y.
    """
    if rules.looks == 1 or count % (10 * rules.looks) == 0:
        return True
    if count % rules.looks:
        return False
    right_side = rows.corrected_velocity(last.z) - 2.0 * last.z - ETA * last.x - rho * last.y
    guessed = rows.error(now.y, -right_side - (ETA + rho) * now.x)
    return bool(((guessed <= _HOPEFUL * budget.tolerance) & (error > budget.tolerance)).any())
