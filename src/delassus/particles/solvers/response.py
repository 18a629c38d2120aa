"""Products with W⁻¹: blockwise if W is block diagonal, else by a sparse factor."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from delassus.particles.solvers.system import System

Array = NDArray[np.float64]


class Response:
    """The response of velocities to impulses without rows."""

    def __init__(self, system: System, factored: bool = True) -> None:
        self.system = system
        free = system.structure.free
        blocks = np.where(free[:, None, None], system.diagonal, np.eye(3))
        self.inverse = np.where(free[:, None, None], np.linalg.inv(blocks), 0.0)
        self.masses = np.trace(blocks, axis1=1, axis2=2) / 3.0
        self.factor = (
            system.structure.new_factor().factor(system.stiff) if factored and system.stiff is not None else None
        )

    @property
    def by_blocks(self) -> bool:
        """Whether W is block diagonal."""
        return self.factor is None

    def solve(self, b: Array) -> Array:
        """W⁻¹ b (3 nodes,), 0 for prescribed velocities."""
        if self.factor is not None:
            return self.factor.solve(b)
        n = self.system.structure.particles.n  # the blocks of particles are multiples of the identity
        light = (self.inverse[:n, 0, 0, None] * b[: 3 * n].reshape(-1, 3)).reshape(-1)
        return np.concatenate([light, (self.inverse[n:] @ b[3 * n :].reshape(-1, 3, 1)).reshape(-1)])

    def free(self, v: Array) -> Array:
        """Velocities (3 nodes,) without impulses of rows; prescribed ones are unchanged."""
        prescribed = np.where(self.system.free, 0.0, v)
        return prescribed + self.solve(self.system.c - self.system.W @ prescribed)

    @cached_property
    def diagonal(self) -> Array:
        """(m,) diagonal of the Schur complement, with the blocks of W alone."""
        J = self.system.J
        light = np.where(self.system.free, 1.0 / np.repeat(self.masses, 3), 0.0)
        values = np.asarray(J.multiply(J) @ light) + self.system.R
        return np.where(values > 0.0, values, 1.0)
