"""Sparse Cholesky factors of A = W + Jᵀ E⁻¹ J, and proximal iterations.

A has the pattern of the mesh and is positive definite for any rows: soft, stiff, rigid, redundant. For elastic rows E =
R, and one solve is exact. Rigid and very stiff rows get a small compliance E > R in A, and iterations

    A δv = r + Jᵀ E⁻¹ s,    δλ = E⁻¹ (s - J δv),    r = c - W v + Jᵀ λ,    s = -(J v + R λ + b)

compensate it: each leaves the fraction E/(E + σ) of an error whose rows have the response σ, and also refines rounding
errors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from delassus.particles.solvers.system import RowSolution, System, solve_status

Array = NDArray[np.float64]


def by_cholesky(system: System, v: Array, impulse: Array, tolerance: float, iterations: int) -> RowSolution:
    """Solve from velocities (3 nodes,), including prescribed ones, and initial impulses (m,)."""
    factor = system.structure.factor.take(system.lower)
    return refine(system, factor, v, impulse, tolerance, iterations)


def refine(
    system: System,
    factor: object,
    v: Array,
    impulse: Array,
    tolerance: float,
    iterations: int,
    contact_impulse: Array | None = None,
) -> RowSolution:
    """Proximal iterations with a factor; `push` (3 nodes,) are impulses of contacts [N·s]."""
    best, least, iteration = (v, impulse), np.inf, 0
    contact_part = 0.0 if contact_impulse is None else system.free_part(contact_impulse)
    for iteration in range(iterations + 1):
        s = system.left(v, impulse)
        error = system.unmet(s)
        if (
            iteration == 0 < iterations and tolerance < error < np.inf
        ):  # rows not converged, so the momentum error need not be computed
            right, least = system.imbalance(v, impulse + s / system.E) + contact_part, error
        else:
            r = system.imbalance(v, impulse) + contact_part
            error = max(error, system.momentum_error(r))
            if iteration == 1 and error >= least:  # then the momentum error of the first iterate is needed, too
                least = max(least, system.momentum_error(system.imbalance(*best) + contact_part))
            if error < least:
                best, least = (v, impulse), error
            if error <= tolerance or iteration == iterations or not np.isfinite(error):
                break
            right = r + system.free_part(system.JT @ (s / system.E))
        change = factor.solve(right)  # type: ignore[attr-defined]
        impulse = impulse + (s - system.J @ change) / system.E
        v = v + change
    return RowSolution(*best, float(least), iteration, solve_status(least, tolerance))
