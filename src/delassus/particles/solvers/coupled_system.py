"""Systems with a few additional rows that couple particles to other systems.

The holder of the particles moves with the velocity f + G λ, G its response, and the particles with S v. The rows f + G
λ - S v + b = 0 are compliant rows with a full matrix R; along the eigenvectors of G = Q R Qᵀ they are like all others,

    J = -Qᵀ S,    J v + R λ + Qᵀ (f + b) = 0.

These rows connect distant particles. The factor of A is reused: A' = A + Jᵀ E⁻¹ J is inverted with k further solves
(Woodbury).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from delassus.particles.solvers.system import System
from delassus.step.scheme.blend import Blend
from delassus.step.scheme.row_laws import kinematic

Array = NDArray[np.float64]


class Tie(NamedTuple):
    """Coupling of particles to another system.

    Attributes:
        points: (k,) indices of the particles.
        places: (k, 3) positions of the holder before the step [m].
        rates: (k, 3) velocities of the holder before the step [m/s].
        free: (k, 3) velocities of the holder after the step without the particles [m/s].
        response: (3 k, 3 k) change of these velocities per impulse [1/kg].
    """

    points: NDArray[np.int64]
    places: Array
    rates: Array
    free: Array
    response: Array


class CoupledSystem(System):
    """A system extended by the rows of a tie."""

    def __init__(self, system: System, tie: Tie, x: Array, v: Array, blend: Blend, yields: float) -> None:
        """At positions x (n, 3), from velocities v (nodes, 3); rigid rows get a compliance relative to their
        response.
        """
        R, self.axes = np.linalg.eigh(0.5 * (tie.response + tie.response.T))
        k, width = len(R), system.J.shape[1]
        columns = (3 * tie.points[:, None] + np.arange(3)).reshape(-1)
        J = sparse.csr_matrix((-self.axes.T.reshape(-1), np.tile(columns, k), k * np.arange(k + 1)), shape=(k, width))
        gap, rate = (tie.places - x[tie.points]).reshape(-1), (tie.rates - v[tie.points]).reshape(-1)
        b = self.axes.T @ (tie.free.reshape(-1) + kinematic(blend, gap, rate, 0.0))
        R = np.maximum(R, 0.0)
        lightest = float(np.min(system.masses[columns]))
        E = np.maximum(R, yields / lightest)
        R, b, E = (np.concatenate(pair) for pair in ((system.R, R), (system.b, b), (system.E, E)))
        rows = sparse.vstack([system.J, J], format="csr")
        super().__init__(system.structure, system.diagonal, system.stiff, system.c, rows, R, b, E, system.g)
        self.tied, self.k = J, k

    @cached_property
    def length(self) -> Array:
        """As for `System`; 1 for the rows of the tie, which are velocities."""
        return np.concatenate([self.structure.rows.length, np.ones(self.k)])

    def complete_factor(self, factor: Any) -> Any:
        """Extend a factor of A by the rows of the tie."""
        return CoupledFactor(factor, self.tied, self.E[-self.k :])

    def split(self, impulse: Array) -> tuple[Array, Array]:
        """The impulses (m,) of elements, and those (k, 3) of the tie on the holder, in the world."""
        return impulse[: -self.k], (self.axes @ impulse[-self.k :]).reshape(-1, 3)


class CoupledFactor:
    """(A + Jᵀ E⁻¹ J)⁻¹ for a few rows J, by a factor of A."""

    def __init__(self, factor: Any, J: Any, E: Array) -> None:
        self.factor, self.J = factor, J
        self.towards = np.stack([factor.solve(row) for row in J.toarray()], 1)
        self.inner = linalg.cho_factor(np.diag(E) + J @ self.towards)

    def solve(self, b: Array) -> Array:
        """A'⁻¹ b (3 nodes,) for the free nodes, 0 for the others."""
        x = self.factor.solve(b)
        return np.asarray(x - self.towards @ linalg.cho_solve(self.inner, self.J @ x))
