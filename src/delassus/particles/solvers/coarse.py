"""The coarse grid of multigrid: about ten nodes that are neighbors at rest are merged into one."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial import cKDTree

from delassus.particles.algebra.cholesky import Cholesky, Fronts
from delassus.particles.algebra.memory import check_bytes
from delassus.particles.algebra.pattern import Pattern
from delassus.particles.description.particles import Particles

Array = NDArray[np.float64]

TOGETHER: Final = 12
"""Maximum number of nodes merged into one node of the coarse grid."""


class CoarseGrid:
    """The symbolic structure of a coarse grid: groups of nodes, and positions of their blocks."""

    def __init__(
        self, particles: Particles, pattern: Pattern, is_free: NDArray[np.bool_], node_positions: Array
    ) -> None:
        free = np.flatnonzero(is_free)
        points = node_positions[free]
        leaf = _leaves(points)
        self.count = int(leaf.max(initial=-1)) + 1
        self.of = np.full(pattern.nodes, self.count)
        self.of[free] = leaf
        ones = np.ones(len(free))
        self.gather = sparse.csr_matrix((ones, (leaf, free)), shape=(self.count, pattern.nodes))
        row, column = self.of[pattern.rows], self.of[pattern.indices]
        entries = np.flatnonzero((row < self.count) & (column < self.count))
        row, column = row[entries], column[entries]
        self.pattern = Pattern(self.count, [np.stack([row, column], 1)[row < column]])
        position = np.searchsorted(self.pattern.keys, row * np.int64(self.count) + column)
        shape = (self.pattern.blocks, pattern.blocks)
        self.sum = sparse.csr_matrix((np.ones(len(entries)), (position, entries)), shape=shape)
        middle = (self.gather @ node_positions) / np.bincount(leaf)[:, None]
        fronts = Fronts(self.pattern, middle, np.ones(self.count, bool))
        check_bytes(f"a coarse factor of {particles!r}", fronts.memory)
        self.factor = Cholesky(fronts)

    def correction(self, r: Array) -> Array:
        """P A_c⁻¹ Pᵀ r (3 nodes,)."""
        coarse = self.factor.solve((self.gather @ r.reshape(-1, 3)).reshape(-1)).reshape(-1, 3)
        return np.concatenate([coarse, np.zeros((1, 3))])[self.of].reshape(-1)


def _leaves(points: Array) -> NDArray[np.int64]:
    """(n,) the index of the leaf of a bisection tree that contains each point (n, 3)."""
    number, count = np.zeros(len(points), np.int64), 0
    waiting = [cKDTree(points, leafsize=TOGETHER).tree] if len(points) else []
    while waiting:
        node = waiting.pop()
        if node.split_dim == -1:
            number[node.indices] = count
            count += 1
        else:
            waiting += [node.greater, node.lesser]
    return number
