"""The system of a step, sparse.

    [W, -Jᵀ; -J, -R] [v⁺; λ] = [c; b]

with the names of robots (`dl.stepping.compliant_system`): the response matrix W, the net momentum c, constraint values
b, and R = C/(h²αβ) of elastic rows. Prescribed velocities do not change.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from delassus.constrained.solvers.status import Status
from delassus.particles.solvers.structure import Structure

Array = NDArray[np.float64]


class System:
    """W, c, J, R and b, with quantities derived by solvers.

    Attributes:
        diagonal: (nodes, 3, 3) blocks of W, if it has no others, M + hαD.
        stiff: (blocks, 3, 3) all blocks of W in the pattern, or None if it is block diagonal.
        c: (3 nodes,); J (m, 3 nodes) sparse; R, b (m,).
        E: (m,) compliance of the rows in the factor: R, or a little more for rigid rows.
        g: (m,) errors of the rows.
    """

    def __init__(
        self, structure: Structure, diagonal: Array, stiff: Array | None, c: Array, J: Any, R: Array, b: Array,
        E: Array, g: Array,
    ) -> None:  # fmt: skip
        self.structure, self.diagonal, self.stiff = structure, diagonal, stiff
        self.c, self.J, self.R, self.b, self.E, self.g = c, J, R, b, E, g

    @property
    def finite(self) -> bool:
        """Whether all arrays are finite, checked by their sums."""
        stiff = self.diagonal if self.stiff is None else self.stiff
        with np.errstate(invalid="ignore", over="ignore"):
            return all(bool(np.isfinite(x.sum())) for x in (self.c, self.b, self.J.data, stiff))

    @cached_property
    def free(self) -> NDArray[np.bool_]:
        """(3 nodes,) which velocities are free."""
        return np.repeat(self.structure.free, 3)

    @cached_property
    def W(self) -> Any:
        """(3 nodes, 3 nodes), sparse."""
        if self.stiff is not None:
            return self.structure.pattern.matrix(self.stiff)
        n = len(self.diagonal)
        return sparse.bsr_matrix((self.diagonal, np.arange(n), np.arange(n + 1)), shape=(3 * n, 3 * n))

    @cached_property
    def A(self) -> Array:
        """(blocks, 3, 3) of W + Jᵀ E⁻¹ J in the pattern."""
        pattern = self.structure.pattern
        total = pattern.sum_blocks(self.structure.rows.squares(self.J, self.E))
        if self.stiff is None:
            total[pattern.diagonal] += self.diagonal
        else:
            total += self.stiff
        return total

    @cached_property
    def lower(self) -> Array:
        """The blocks (…, 9) of W + Jᵀ E⁻¹ J that a factor reads, in its order."""
        return self.structure.lower.blocks(self.diagonal, self.stiff, self.J, self.E)

    def complete_factor(self, factor: Any) -> Any:
        """A factor of A with what the pattern has no room for: here, nothing."""
        return factor

    @cached_property
    def JT(self) -> Any:
        """The transposed Jacobian Jᵀ as a sparse matrix."""
        return self.J.T

    def apply_inertia(self, v: Array) -> Array:
        """W v (3 nodes,)."""
        if self.stiff is not None:
            return np.asarray(self.W @ v)
        if self.structure.particles.bricks is None:
            return self.masses * v
        n = self.structure.particles.n  # the blocks of particles are multiples of the identity
        light = (self.diagonal[:n, 0, 0, None] * v[: 3 * n].reshape(-1, 3)).reshape(-1)
        return np.concatenate([light, (self.diagonal[n:] @ v[3 * n :].reshape(-1, 3, 1)).reshape(-1)])

    @cached_property
    def masses(self) -> Array:
        """(3 nodes,) W's diagonal."""
        return np.asarray(np.diagonal(self.diagonal, axis1=1, axis2=2).reshape(-1))

    @cached_property
    def heavy(self) -> Array:
        """(free nodes,) what turns a momentum into a velocity [m/s]: the mean mass of each, or inertia by an arm."""
        m = self.masses
        return np.asarray(((m[::3] + m[1::3] + m[2::3]) / (3.0 * self.structure.arms))[self.structure.free])

    def free_part(self, x: Array) -> Array:
        """x (3 nodes,) with zeros for velocities that are given."""
        free_values = np.array(x)
        free_values[self.structure.is_prescribed] = 0.0
        return free_values

    def imbalance(self, v: Array, impulse: Array) -> Array:
        """c - W v + Jᵀ λ (3 nodes,) of free velocities [N·s]."""
        row_force = self.JT @ impulse
        row_force += self.c
        row_force -= self.apply_inertia(v)
        row_force[self.structure.is_prescribed] = 0.0
        return np.asarray(row_force)

    def left(self, v: Array, impulse: Array) -> Array:
        """-(J v + R λ + b) (m,) [m/s]."""
        row_velocity = self.J @ v
        row_velocity += self.R * impulse
        row_velocity += self.b
        return np.asarray(np.negative(row_velocity, out=row_velocity))

    @cached_property
    def speed(self) -> float:
        """A scale of velocities [m/s]."""
        velocity = _largest(self.c)[self.structure.free] / self.heavy
        return float(max(np.max(velocity, initial=0.0), np.max(self.length * np.abs(self.b), initial=0.0), 1e-300))

    @cached_property
    def length(self) -> Array:
        """(m,) what turns a rate of each row into a velocity [m/s]: one by the size of the row."""
        return self.structure.rows.length

    def unmet(self, left: Array) -> float:
        """Residuals of rows (m,), as velocities, relative to their scale."""
        return float(np.max(self.length * np.abs(left), initial=0.0) / self.speed)

    def error(self, v: Array, impulse: Array) -> float:
        """The larger of the relative residuals of rows and of the momentum balance."""
        return float(max(self.unmet(self.left(v, impulse)), self.momentum_error(self.imbalance(v, impulse))))

    def momentum_error(self, r: Array) -> float:
        """A momentum (3 nodes,) as velocities, by their scale."""
        share = _largest(r)[self.structure.free] / self.heavy
        return float(np.max(share, initial=0.0) / self.speed)


def _largest(x: Array) -> Array:
    """(nodes,) the largest of each node's three numbers."""
    a = np.abs(x.reshape(-1, 3))
    return np.maximum(np.maximum(a[:, 0], a[:, 1]), a[:, 2])


class RowSolution(NamedTuple):
    """The solution of a step: v⁺ (3 nodes,), impulses (m,), remaining error, iterations, `Status`."""

    v: Array
    impulse: Array
    error: float
    iterations: int
    status: Status


def solve_status(error: float, tolerance: float) -> Status:
    """The status of a solve with this error and tolerance."""
    if not np.isfinite(error):
        return Status.NOT_FINITE
    return Status.CONVERGED if error <= tolerance else Status.ITERATIONS
