"""ADMM: splits a problem into impulses x that satisfy the dynamics and impulses y in the cones, with a multiplier z.

    x ← -(G + η + ρ)⁻¹ (g + Γ(z) - η x - ρ y - z),   w = α x + (1 - α) y,   y ← P(w - z/ρ),   z ← z - ρ (w - y)

One factor serves all iterations, each of which costs as much as a Gauss–Seidel sweep: 2 m² multiplications with both
triangles. ADMM converges for every convex problem, at a rate that does not depend on the order of contacts, and usually
with friction, where Γ lags by one iteration. Over-relaxation by α roughly halves the number of iterations. The penalty
is ρ = √(ηL) (L/η)^p, L the largest eigenvalue; it changes, with a new factor, when the primal residual x - y and the
dual residual (the change of y) differ by a factor of ten. Batches on the host use the same `admm_step`, see
`large.admm`.

References: J. Carpentier, Q. Le Lidec, L. Montaut, From Compliant to Rigid Contact Simulation (2024); S. Boyd et al.
(2011).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import while_loop
from delassus.contact.solvers.progress import FOREVER, Best, Budget
from delassus.contact.solvers.registry import register_solver
from delassus.contact.systems.protocol import MATRIX, SHIFT
from delassus.contact.systems.scaled import Scaled

ETA: Final = 1e-6
POWER: Final = 0.2
"""Initial p."""

STEP: Final = 0.05
"""Increment of p."""

LARGEST_POWER: Final = 0.6
APART: Final = 10.0
PATIENCE: Final = 10.0
"""Minimum number of iterations between changes of the penalty."""

RELAXATION: Final = 1.6
"""α, in the first `RELAXED` iterations."""

RELAXED: Final = 300.0
"""Afterwards α = 1: over-relaxation together with a changing penalty can cycle."""


class Iterates(NamedTuple):
    """x, y and z (m,), or (B, m)."""

    x: Any
    y: Any
    z: Any


def admm_step(system: Any, solve: Callable[[Any], Any], last: Iterates, rho: Any, count: Any) -> Iterates:
    """The next iterate; `solve` applies (G + η + ρ)⁻¹. Arrays are of one state, traced, or of a batch."""
    x, y, z = last
    alpha = np.where(count < RELAXED, RELAXATION, 1.0)
    new = -solve(system.g + (system.corrected_velocity(z) - z) - ETA * x - rho * y - z)
    further = y + alpha * (new - y)
    projected = system.project(further - z / rho)
    return Iterates(new, projected, z - rho * (further - projected))


def disagreements(last: Iterates, now: Iterates, rho: Any) -> tuple[Any, Any]:
    """The primal residual x - y and the dual residual, the change of y (m,)."""
    return np.abs(now.x - now.y), np.abs(ETA * (now.x - last.x) + rho * (now.y - last.y))


@register_solver("admm", needs={SHIFT, MATRIX})
def admm(system: Scaled, best: Best, budget: Budget) -> Best:
    """Improve the best impulses."""
    largest = _largest_eigenvalue(system.G)

    def penalty(power: Any) -> Any:
        return np.sqrt(ETA * largest) * np.exp(power * np.log(largest / ETA))

    def one_penalty(carry: Any) -> Any:
        power, iterates, best = carry
        rho = penalty(power)
        inverse = system.solve_shifted(ETA + rho)

        def step(inner: Any) -> Any:
            last, count, _, best = Iterates(*inner[0]), inner[1], inner[2], Best(*inner[3])
            now = admm_step(system, lambda b: inverse @ b, last, rho, best.count)
            primal_residual, dual_residual = (np.max(x) for x in disagreements(last, now, rho))
            improved = best.or_better(Best.of(system, now.y, best.count + 1.0))
            change = np.where(
                primal_residual > APART * dual_residual,
                1.0,
                np.where(dual_residual > APART * primal_residual, -1.0, 0.0),
            )
            change = np.where(count + 1.5 > PATIENCE, change, 0.0)
            return tuple(now), count + 1.0, change, tuple(improved)

        def should_continue(inner: Any) -> Any:
            return Best(*inner[3]).open(budget) & (inner[2] == 0.0)

        start = (iterates, np.array(0.0), np.array(0.0), best)
        iterates, _, change, best = while_loop(should_continue, step, start, FOREVER)
        return np.clip(power + STEP * change, 0.0, LARGEST_POWER), iterates, best

    z = system.corrected_velocity(best.velocity)
    start = (np.array(POWER), (best.impulse, best.impulse, z), tuple(best))
    *_, last = while_loop(lambda carry: Best(*carry[-1]).open(budget), one_penalty, start, FOREVER)
    return Best(*last)


def _largest_eigenvalue(G: Any) -> Any:
    """Estimate by power iteration, starting from the row sums."""
    x = np.sum(np.abs(G), 1)
    for _ in range(6):
        x = G @ (x / np.sqrt(np.sum(x * x)))
    return np.sqrt(np.sum(x * x)) * 1.05
