"""Conjugate gradients on the Schur complement, and minimal residuals on the whole matrix, with diagonal scales."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, minres

from delassus.particles.solvers.response import Response
from delassus.particles.solvers.system import Solved, System, ended

Array = NDArray[np.float64]


def by_cg(system: System, v: Array, impulse: Array, tolerance: float, iterations: int) -> Solved:
    """(J W⁻¹ Jᵀ + R) λ = -(b + J v), v without impulses; preconditioned by its diagonal with W's blocks."""
    response = Response(system)
    free = response.free(v)
    x = np.array(impulse)
    unit = 1.0 / response.diagonal

    def apply(y: Array) -> Array:
        return np.asarray(system.J @ response.solve(system.JT @ y) + system.R * y)

    r = -(system.b + system.J @ free) - apply(x)
    z = unit * r
    p, rz, made = np.array(z), float(r @ z), 0
    best, least = np.array(x), np.inf
    for made in range(iterations + 1):
        error = system.unmet(r)
        if error < least:
            best, least = np.array(x), error
        if error <= 0.5 * tolerance or made == iterations or not np.isfinite(error) or rz == 0.0:
            break
        Sp = apply(p)
        curvature = float(p @ Sp)
        if curvature <= 0.0:  # rows that contradict each other: no velocity answers to these impulses
            break
        step = rz / curvature
        x += step * p
        r -= step * Sp
        z = unit * r
        rz, before = float(r @ z), rz
        p = z + (rz / before) * p
    after = free + response.solve(system.JT @ best)
    error = system.error(after, best)
    return Solved(after, best, error, made, ended(error, tolerance))


def by_minres(system: System, v: Array, impulse: Array, tolerance: float, iterations: int) -> Solved:
    """The whole matrix, in units of the diagonal of W and of what that leaves of the Schur complement."""
    response = Response(system, factored=False)
    heavy = np.where(system.free, 1.0 / np.sqrt(np.repeat(response.masses, 3)), 0.0)
    unit = 1.0 / np.sqrt(response.diagonal)
    n, given = len(heavy), np.where(system.free, 0.0, v)

    def apply(x: Array) -> Array:
        u, y = heavy * x[:n], unit * x[n:]
        held = np.where(system.free, 0.0, x[:n])
        return np.concatenate([heavy * (system.W @ u - system.JT @ y) + held, -unit * (system.J @ u + system.R * y)])

    c, b = system.c - system.W @ given, system.b + system.J @ given
    size = n + len(unit)
    right = np.concatenate([heavy * c, unit * b])
    count: list[int] = []
    start = np.concatenate([np.where(system.free, v, 0.0) / np.where(heavy > 0.0, heavy, 1.0), impulse / unit])
    operator: Any = LinearOperator((size, size), matvec=apply, dtype=float)
    found, _ = minres(operator, right, x0=start, rtol=0.1 * tolerance, maxiter=iterations, callback=count.append)
    after, pulled = given + heavy * found[:n], unit * found[n:]
    error = system.error(after, pulled)
    return Solved(after, pulled, error, len(count), ended(error, tolerance))
