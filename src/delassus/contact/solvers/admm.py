"""ADMM: impulses x that obey the dynamics and impulses y that obey the cones, drawn together by a price z.

    x ← -(G + η + ρ)⁻¹ (g + Γ(z) - η x - ρ y - z),   y ← P(x - z/ρ),   z ← z - ρ (x - y)

One factor serves all iterations, each of which then costs what a sweep of Gauss–Seidel does, 2 m² multiplications with
both triangles. It converges for every convex problem, at a rate that does not depend on the order of contacts, and
usually with friction, where Γ is that of the iteration before. The penalty ρ = √(ηL) (L/η)^p, L the largest eigenvalue,
grows or shrinks, with a new factor, when x - y and the changes of y differ by a factor of ten.

References: J. Carpentier, Q. Le Lidec, L. Montaut, From Compliant to Rigid Contact Simulation (2024); S. Boyd et al.
(2011).
"""

from __future__ import annotations

from typing import Any, Final

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import while_loop
from delassus.contact.solvers.progress import FOREVER, Best, Budget
from delassus.contact.solvers.scaled import Scaled

_ETA: Final = 1e-6
_POWER: Final = 0.2
_STEP: Final = 0.05
_APART: Final = 10.0
_PATIENCE: Final = 10.0
"""Iterations that a penalty gets at least."""


def admm(problem: Scaled, best: Best, budget: Budget) -> Best:
    """From the best impulses so far to better ones."""
    m, largest = problem.layout.m, _largest_eigenvalue(problem.G)

    def penalty(power: Any) -> Any:
        return np.sqrt(_ETA * largest) * np.exp(power * np.log(largest / _ETA))

    def one_penalty(carry: Any) -> Any:
        power, x, y, z, last = carry
        rho = penalty(power)
        inverse = np.linalg.inv(problem.G + (_ETA + rho) * np.eye(m), assume_a="pos")

        def step(inner: Any) -> Any:
            x, y, z, made, _, last = inner
            s = problem.corrected(z) - z
            new = -inverse @ (problem.g + s - _ETA * x - rho * y - z)
            kept = problem.projected(new - z / rho)
            z = z - rho * (new - kept)
            apart, moved = np.max(np.abs(new - kept)), np.max(np.abs(_ETA * (new - x) + rho * (kept - y)))
            found = Best(*last).or_better(Best.of(problem, kept, Best(*last).count + 1.0))
            change = np.where(apart > _APART * moved, 1.0, np.where(moved > _APART * apart, -1.0, 0.0))
            change = np.where(made + 1.5 > _PATIENCE, change, 0.0)
            return new, kept, z, made + 1.0, change, tuple(found)

        def goes_on(inner: Any) -> Any:
            return Best(*inner[-1]).open(budget) & (inner[-2] == 0.0)

        x, y, z, _, change, last = while_loop(goes_on, step, (x, y, z, np.array(0.0), np.array(0.0), last), FOREVER)
        return np.clip(power + _STEP * change, 0.0, 0.6), x, y, z, last

    z = problem.corrected(best.velocity)
    start = (np.array(_POWER), best.impulse, best.impulse, z, tuple(best))
    *_, last = while_loop(lambda carry: Best(*carry[-1]).open(budget), one_penalty, start, FOREVER)
    return Best(*last)


def _largest_eigenvalue(G: Any) -> Any:
    """By some iterations of the power method, from the rows' sums."""
    x = np.sum(np.abs(G), 1)
    for _ in range(6):
        x = G @ (x / np.sqrt(np.sum(x * x)))
    return np.sqrt(np.sum(x * x)) * 1.05
