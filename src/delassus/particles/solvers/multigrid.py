"""Conjugate gradients on A = W + Jᵀ E⁻¹ J with a two-grid preconditioner; the time is linear in the size.

The smoother is Jacobi with 3 × 3 blocks D, twice before and after, x ← x + ω D⁻¹ (r - A x). The coarse grid merges
about ten neighboring nodes into one, A_c = Pᵀ A P, and is factored. For a sheet the cost of factors grows as n^1.5, and
that of A_c is about 30 times less than that of A.

Cycles use single precision, which halves the memory traffic; conjugate gradients use double precision. An element of k
points has D⁻¹ A ≤ k, and so has their sum: ω = 4/(3 k).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from delassus.particles.solvers.direct import refine
from delassus.particles.solvers.system import RowSolution, System

Array = NDArray[np.float64]

SMOOTHED: Final = 2
"""Number of smoothing steps before and after the coarse grid."""

INNER: Final = 500
"""Maximum number of conjugate gradient iterations; then outer iterations restart with the residual."""


def by_multigrid(system: System, v: Array, impulse: Array, tolerance: float, iterations: int) -> RowSolution:
    """Solve from velocities (3 nodes,), including prescribed ones, and initial impulses (m,)."""
    return refine(system, TwoGrids(system, 0.3 * tolerance), v, impulse, tolerance, iterations)


class TwoGrids:
    """A⁻¹ b by conjugate gradients; `least` is the target of `System.momentum_error`."""

    def __init__(self, system: System, least: float) -> None:
        self.system, self.least = system, least
        structure = system.structure
        blocks = system.A
        self.matrix = structure.pattern.matrix(blocks)
        self.scale = float(np.abs(blocks).max(initial=0.0)) or 1.0
        self.rough = structure.pattern.matrix((blocks / self.scale).astype(np.float32))
        self.grid = structure.coarse
        self.grid.factor.factor((self.grid.sum @ blocks.reshape(-1, 9)).reshape(-1, 3, 3))
        inverse = np.linalg.inv(blocks[structure.pattern.diagonal][structure.free])
        free, n = np.flatnonzero(structure.free), structure.pattern.nodes
        most = max((group.kind.points for group in structure.particles.elements), default=1)
        starts = np.concatenate([[0], np.cumsum(structure.free)])
        weighted = (4.0 / (3.0 * most) * self.scale * inverse).astype(np.float32)
        self.jacobi = sparse.bsr_matrix((weighted, free, starts), shape=(3 * n, 3 * n))

    def apply(self, x: Array) -> Array:
        """A x (3 nodes,), 0 for prescribed velocities."""
        product = self.matrix @ x
        product[self.system.structure.is_prescribed] = 0.0
        return np.asarray(product)

    def cycle(self, r: Array) -> Array:
        """An approximation of A⁻¹ r."""
        size = float(np.abs(r).max(initial=0.0)) or 1.0
        rough: NDArray[np.float32] = (r / size).astype(np.float32)
        x = self.jacobi @ rough
        for _ in range(SMOOTHED - 1):
            x += self.jacobi @ (rough - self.rough @ x)
        residual = (rough - self.rough @ x).astype(float)
        x += (self.scale * self.grid.correction(residual)).astype(np.float32)
        for _ in range(SMOOTHED):
            x += self.jacobi @ (rough - self.rough @ x)
        return np.asarray(x * (size / self.scale), float)

    def solve(self, b: Array) -> Array:
        """A⁻¹ b (3 nodes,)."""
        r, x = self.system.free_part(b), np.zeros(len(b))
        z = self.cycle(r)
        p, rz = z, float(r @ z)
        for _ in range(INNER):
            if not rz > 0.0 or self.system.momentum_error(r) <= self.least:
                break
            Ap = self.apply(p)
            step = rz / float(p @ Ap)
            x += step * p
            r -= step * Ap
            z = self.cycle(r)
            rz, before = float(r @ z), rz
            p = z + (rz / before) * p
        return x
