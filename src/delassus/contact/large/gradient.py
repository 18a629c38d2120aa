"""Accelerated projected gradients over a batch in NumPy; they need products with G only.

    y ← P(w - (G w + g + Γ)/L),    w ← y + β (y - y⁻), restarted where the energy rises

L is the largest eigenvalue, by power iteration. Slower than ADMM; choose it for operators without a damped solve.

Reference: H. Mazhar et al., Using Nesterov's method to accelerate multibody dynamics (2015).
"""

from __future__ import annotations

import numpy as np

from delassus.contact.large.admm import admm
from delassus.contact.large.progress import Best, Budget
from delassus.contact.large.rows import Array, Rows
from delassus.contact.solvers.registry import register_solver
from delassus.contact.systems.protocol import BATCH, SHIFT


@register_solver("gradient", needs={BATCH}, traced=False)
def gradient(rows: Rows, best: Best, budget: Budget) -> None:
    """Improve the best impulses."""
    everyone, largest = np.arange(len(best.error)), _largest_eigenvalue(rows)
    y = best.impulse.copy()
    w, t = y, np.ones((len(y), 1))
    while len(best.open(budget)):
        best.count[best.open(budget)] += 1
        new = rows.project(w - rows.corrected_velocity(rows.velocity(w)) / largest)
        again = np.sum((w - new) * (new - y), -1, keepdims=True) > 0.0
        t = np.where(again, 1.0, t)
        later = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        w, y, t = new + np.where(again, 0.0, (t - 1.0) / later) * (new - y), new, later
        best.keep(everyone, y, rows.error(y, rows.velocity(y)))


@register_solver("auto", needs={BATCH}, traced=False)
def solve_operator(rows: Rows, best: Best, budget: Budget) -> None:
    """Solve by ADMM if the operator has a damped solve, else by projected gradients."""
    (admm if SHIFT in rows.capabilities else gradient)(rows, best, budget)


def _largest_eigenvalue(rows: Rows) -> Array:
    """(B, 1) upper estimates for the scaled matrices."""
    x = np.ones(rows.g.shape) + 0.1 * np.sin(np.arange(rows.g.shape[-1]))
    for _ in range(30):
        x = rows.velocity(x / np.linalg.norm(x, axis=-1, keepdims=True)) - rows.g
    return np.asarray(1.05 * np.linalg.norm(x, axis=-1, keepdims=True))
