"""The Delassus matrix of contacts as an operator, G = J_c A⁻¹ J_cᵀ, with A = W + Jᵀ E⁻¹ J of the elements.

Since (G + D)⁻¹ = D⁻¹ - D⁻¹ J_c (A + J_cᵀ D⁻¹ J_c)⁻¹ J_cᵀ D⁻¹, its damped inverse needs one sparse factor, with the
pattern of A if each contact acts on one particle. `ContactProblem` needs no other operations.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from delassus.particles.algebra.cholesky import Cholesky
from delassus.particles.algebra.memory import check_bytes
from delassus.particles.algebra.pattern import Pattern
from delassus.particles.contact.bricks import Touches
from delassus.particles.solvers.system import System

Array = NDArray[np.float64]


def contact_rows(groups: list[Touches], nodes: int) -> Any:
    """J_c (3 contacts, 3 nodes), sparse."""
    data, columns, counts = [], [], []
    for touches in groups:
        c, k = touches.nodes.shape
        data.append(touches.rows.reshape(-1))
        wide = (3 * touches.nodes[:, None, :, None] + np.arange(3)).repeat(3, 1)
        columns.append(wide.reshape(-1))
        counts.append(np.full(3 * c, 3 * k))
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    shape = (len(indptr) - 1, 3 * nodes)
    return sparse.csr_matrix((np.concatenate(data), np.concatenate(columns), indptr), shape=shape)


class ContactOperator:
    """G = J_c A⁻¹ J_cᵀ of contacts, by sparse factors."""

    def __init__(self, system: System, factor: Any, groups: list[Touches], cache: dict[str, Any]) -> None:
        """Create for a system with factored A; `known` caches patterns between steps."""
        self.system, self.factor, self.groups, self.known = system, factor, groups, cache
        self.J = contact_rows(groups, system.structure.particles.nodes)
        self.JT = self.J.T.tocsr()
        self._damping: Array | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape (m, m) of the operator."""
        return (self.J.shape[0], self.J.shape[0])

    def apply(self, x: Array) -> Array:
        """G x (m,)."""
        return np.asarray(self.J @ self.factor.solve(self.JT @ x))

    def solve(self, b: Array, damping: Array) -> Array:
        """(G + diag(damping))⁻¹ b (m,)."""
        factor = self._damped(damping)
        y = b / damping
        return np.asarray(y - (self.J @ factor.solve(self.JT @ y)) / damping)

    def answer(self, N: Array, offset: Array, g: Array) -> tuple[Array, Array]:
        """Impulses (m,) and velocities σ (m,) with λ = offset - N σ, N (c, 3, 3), and free velocities g."""
        pattern, factor = self._pattern
        blocks = np.zeros((pattern.blocks, 3, 3))
        blocks[pattern.places(self.system.structure.pattern)] = self.system.A
        parts, start = [], 0
        for number, touches in enumerate(self.groups):
            stop = start + len(touches.gap)
            parts.append((number, np.einsum("crai,crs,csbj->cabij", touches.rows, N[start:stop], touches.rows)))
            start = stop
        blocks += pattern.sum_blocks(parts)
        self._damping = None  # the cached factor is overwritten
        right_side = offset - (N @ g.reshape(-1, 3, 1)).reshape(-1)
        sigma = self.J @ self.system.complete_factor(factor.factor(blocks)).solve(self.JT @ right_side) + g
        return offset - (N @ sigma.reshape(-1, 3, 1)).reshape(-1), np.asarray(sigma)

    def diagonal(self) -> Array:
        """(m,) an upper estimate of the diagonal of G, from the masses of the nodes alone.

        As the scale of ADMM's penalties, it needs a third of the iterations of smaller estimates.
        """
        inverse = np.linalg.inv(self.system.diagonal)
        diagonals = [np.einsum("craj,cajk,crak->cr", t.rows, inverse[t.nodes], t.rows).reshape(-1) for t in self.groups]
        return np.concatenate(diagonals)

    def _damped(self, damping: Array) -> Any:
        """The factor of A + J_cᵀ D⁻¹ J_c, cached while D is constant."""
        if self._damping is None or not np.array_equal(self._damping, damping):
            pattern, factor = self._pattern
            blocks = np.zeros((pattern.blocks, 3, 3))
            blocks[pattern.places(self.system.structure.pattern)] = self.system.A
            start, parts = 0, []
            for number, touches in enumerate(self.groups):
                stop = start + 3 * len(touches.gap)
                D = damping[start:stop].reshape(-1, 3)
                parts.append((number, np.einsum("crai,cr,crbj->cabij", touches.rows, 1.0 / D, touches.rows)))
                start = stop
            blocks += pattern.sum_blocks(parts)
            self._factor = self.system.complete_factor(factor.factor(blocks))
            self._damping = np.array(damping)
        return self._factor

    @cached_property
    def _pattern(self) -> tuple[Pattern, Any]:
        """The pattern of A with contacts and its symbolic factor, cached while the pattern is constant."""
        structure = self.system.structure
        pattern = Pattern.extend(structure.pattern, [touches.nodes for touches in self.groups])
        if pattern.keys is structure.pattern.keys:
            if "plain" not in self.known:
                self.known["plain"] = structure.new_factor()
            return pattern, self.known["plain"]
        if not np.array_equal(self.known.get("keys", 0), pattern.keys):
            fronts = structure.fronts(pattern)
            check_bytes(f"a factor of {structure.particles!r} with contacts", fronts.memory)
            self.known["keys"], self.known["with contacts"] = pattern.keys, Cholesky(fronts)
        return pattern, self.known["with contacts"]
