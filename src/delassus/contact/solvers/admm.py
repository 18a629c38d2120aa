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

from typing import Any, Final, NamedTuple

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


class _Iterate(NamedTuple):
    """x, y and z, the iterations that a penalty has had, which way it should change (±1, 0), and the best so far."""

    x: Any
    y: Any
    z: Any
    count: Any
    change: Any
    best: Best


class _Penalty(NamedTuple):
    """The power that makes a penalty, and what iterations go on from."""

    power: Any
    x: Any
    y: Any
    z: Any
    best: Best


def admm(problem: Scaled, best: Best, budget: Budget) -> Best:
    """From the best impulses so far to better ones."""
    m, largest = problem.layout.m, _largest_eigenvalue(problem.G)

    def penalty(power: Any) -> Any:
        return np.sqrt(_ETA * largest) * np.exp(power * np.log(largest / _ETA))

    def one_penalty(now: _Penalty) -> _Penalty:
        rho = penalty(now.power)
        inverse = np.linalg.inv(problem.G + (_ETA + rho) * np.eye(m), assume_a="pos")

        def step(last: _Iterate) -> _Iterate:
            x, y, z = last.x, last.y, last.z
            s = problem.corrected(z) - z
            new = -inverse @ (problem.g + s - _ETA * x - rho * y - z)
            kept = problem.projected(new - z / rho)
            z = z - rho * (new - kept)
            apart, moved = np.max(np.abs(new - kept)), np.max(np.abs(_ETA * (new - x) + rho * (kept - y)))
            best = last.best.or_better(Best.of(problem, kept, last.best.count + 1.0))
            change = np.where(apart > _APART * moved, 1.0, np.where(moved > _APART * apart, -1.0, 0.0))
            change = np.where(last.count + 1.5 > _PATIENCE, change, 0.0)
            return _Iterate(new, kept, z, last.count + 1.0, change, best)

        def goes_on(last: _Iterate) -> Any:
            return last.best.open(budget) & (last.change == 0.0)

        start = _Iterate(now.x, now.y, now.z, np.array(0.0), np.array(0.0), now.best)
        last = while_loop(goes_on, step, start, FOREVER)
        return _Penalty(np.clip(now.power + _STEP * last.change, 0.0, 0.6), last.x, last.y, last.z, last.best)

    z = problem.corrected(best.velocity)
    start = _Penalty(np.array(_POWER), best.impulse, best.impulse, z, best)
    last: _Penalty = while_loop(lambda now: now.best.open(budget), one_penalty, start, FOREVER)
    return last.best


def _largest_eigenvalue(G: Any) -> Any:
    """By some iterations of the power method, from the rows' sums."""
    x = np.sum(np.abs(G), 1)
    for _ in range(6):
        x = G @ (x / np.sqrt(np.sum(x * x)))
    return np.sqrt(np.sum(x * x)) * 1.05
