"""ADMM over a batch: see `solvers.admm`.

One eigendecomposition G = Q Λ Qᵀ serves all penalties: (G + η + ρ)⁻¹ = Q (Λ + η + ρ)⁻¹ Qᵀ. So each problem has a
penalty of its own, which may change whenever it should; 4 m² multiplications an iteration.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from delassus.contact.large.progress import Best, Budget
from delassus.contact.large.rows import Rows

_ETA: Final = 1e-6
_POWER: Final = 0.2
_STEP: Final = 0.05
_APART: Final = 10.0
_PATIENCE: Final = 10
"""Iterations that a penalty gets at least."""


def admm(rows: Rows, best: Best, budget: Budget, most: int | None = None) -> None:
    """From the best impulses so far to better ones, by so many iterations at most."""
    live = best.open(budget)
    if not len(live):
        return
    some, values, Q = rows[live], *np.linalg.eigh(rows[live].G)
    values = np.maximum(values, 0.0)
    largest = np.maximum(values[:, -1:], _ETA)
    y = best.impulse[live].copy()
    x, z = y, some.corrected(some.velocity(y))
    power, age = np.full((len(live), 1), _POWER), np.zeros((len(live), 1))
    made = 0
    while len(live) and made != most:
        made += 1
        rho = np.sqrt(_ETA * largest) * (largest / _ETA) ** power
        asked = some.g + some.corrected(z) - 2.0 * z - _ETA * x - rho * y
        new = -((asked[:, None] @ Q) / (values + _ETA + rho)[:, None] @ Q.mT)[:, 0]
        kept = some.projected(new - z / rho)
        z = z - rho * (new - kept)
        apart = np.abs(new - kept).max(-1, keepdims=True)
        moved = np.abs(_ETA * (new - x) + rho * (kept - y)).max(-1, keepdims=True)
        x, y = new, kept
        best.count[live] += 1
        best.keep(live, y, some.error(y, some.velocity(y)))
        age += 1
        change = np.where(apart > _APART * moved, 1.0, np.where(moved > _APART * apart, -1.0, 0.0))
        change = np.where(age >= _PATIENCE, change, 0.0)
        power, age = np.clip(power + _STEP * change, 0.0, 0.6), np.where(change == 0.0, age, 0.0)
        going = np.isin(live, best.open(budget))
        if not going.all():
            live, some = live[going], some[np.flatnonzero(going)]
            x, y, z, power, age, values, largest, Q = (a[going] for a in (x, y, z, power, age, values, largest, Q))
