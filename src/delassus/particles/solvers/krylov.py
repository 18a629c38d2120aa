"""Conjugate gradients on the Schur complement, and minimal residuals on the full matrix, with diagonal scaling."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from delassus.linalg.krylov import conjugate_gradients, minimal_residuals
from delassus.particles.solvers.response import Response
from delassus.particles.solvers.system import RowSolution, System, solve_status

Array = NDArray[np.float64]


def by_cg(system: System, v: Array, impulse: Array, tolerance: float, iterations: int) -> RowSolution:
    """(J W⁻¹ Jᵀ + R) λ = -(b + J v), v without impulses, scaled by its diagonal with the blocks of W."""
    response = Response(system)
    free = response.free(v)
    unit = 1.0 / np.sqrt(response.diagonal)

    def apply(x: Array) -> Array:
        y = unit * x
        return np.asarray(unit * (system.J @ response.solve(system.JT @ y) + system.R * y))

    def error(r: Array) -> float:
        return system.unmet(r / unit)

    right = -unit * (system.b + system.J @ free)
    solution = conjugate_gradients(apply, right, 0.5 * tolerance, iterations, impulse / unit, error)
    row_impulse = unit * solution.x
    after = free + response.solve(system.JT @ row_impulse)
    final_error = system.error(after, row_impulse)
    return RowSolution(after, row_impulse, final_error, int(solution.count), solve_status(final_error, tolerance))


def by_minres(system: System, v: Array, impulse: Array, tolerance: float, iterations: int) -> RowSolution:
    """The full matrix, scaled by the diagonal of W and the corresponding diagonal of the Schur complement."""
    response = Response(system, factored=False)
    heavy = np.where(system.free, 1.0 / np.sqrt(np.repeat(response.masses, 3)), 0.0)
    unit = 1.0 / np.sqrt(response.diagonal)
    n, prescribed = len(heavy), np.where(system.free, 0.0, v)

    def apply(x: Array) -> Array:
        u, y = heavy * x[:n], unit * x[n:]
        free_velocity = np.where(system.free, 0.0, x[:n])
        return np.concatenate(
            [heavy * (system.W @ u - system.JT @ y) + free_velocity, -unit * (system.J @ u + system.R * y)]
        )

    c, b = system.c - system.W @ prescribed, system.b + system.J @ prescribed
    right = np.concatenate([heavy * c, unit * b])
    start = np.concatenate([np.where(system.free, v, 0.0) / np.where(heavy > 0.0, heavy, 1.0), impulse / unit])
    solution = minimal_residuals(apply, right, 0.1 * tolerance, iterations, start)
    after, row_impulse = prescribed + heavy * solution.x[:n], unit * solution.x[n:]
    error = system.error(after, row_impulse)
    return RowSolution(after, row_impulse, error, int(solution.count), solve_status(error, tolerance))
