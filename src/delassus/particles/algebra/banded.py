"""Cholesky factors of matrices with a narrow band, as for ropes and ribbons. The cost is linear in the length.

Nodes are ordered by reverse Cuthill–McKee; LAPACK factors the band.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import lapack
from scipy.sparse.csgraph import reverse_cuthill_mckee

from delassus.particles.algebra.cholesky import NotDefinite
from delassus.particles.algebra.one_thread import one_thread
from delassus.particles.algebra.pattern import Pattern

Array = NDArray[np.float64]

WIDEST: Final = 8
"""Largest bandwidth, in nodes, for which a band is faster than fronts."""


class Band:
    """The symbolic structure of a band matrix: order, width, and positions of entries."""

    def __init__(self, pattern: Pattern, free: NDArray[np.bool_]) -> None:
        self.free = np.flatnonzero(free)
        number = np.full(pattern.nodes, -1, np.int64)
        number[self.free] = np.arange(len(self.free))
        row, column = number[pattern.rows], number[pattern.indices]
        entries = np.flatnonzero((row >= 0) & (column >= 0))
        row, column = row[entries], column[entries]
        graph = sparse.csr_matrix((np.ones(len(row), np.int8), (row, column)), shape=(len(self.free),) * 2)
        none = np.zeros(0, np.int64)
        order = np.asarray(reverse_cuthill_mckee(graph, symmetric_mode=True), np.int64) if len(self.free) else none
        position = np.empty(len(order), np.int64)
        position[order] = np.arange(len(order))
        row, column = position[row], position[column]
        lower = row >= column
        row, column, self.source = row[lower], column[lower], entries[lower]
        self.nodes = int((row - column).max(initial=0))
        self.width = 3 * self.nodes + 2
        self.unknowns = (3 * self.free[order][:, None] + np.arange(3)).reshape(-1)
        r = 3 * row[:, None, None] + np.arange(3)[:, None]
        c = 3 * column[:, None, None] + np.arange(3)
        below = r - c
        # Column by column, diagonal first; entries above the diagonal of diagonal blocks go to unused positions.
        self.place = np.where(below >= 0, c * (self.width + 1) + below, self.size).reshape(-1)

    @property
    def size(self) -> int:
        """Number of entries of a factor."""
        return len(self.unknowns) * (self.width + 1)

    @property
    def memory(self) -> int:
        """Memory of a factor [bytes]."""
        return 8 * self.size


class BandedCholesky:
    """A factor of a matrix with a narrow band."""

    def __init__(self, band: Band) -> None:
        self.band = band
        self.buffer = np.zeros(band.size + 1)
        self.columns = self.buffer[:-1].reshape(band.width + 1, -1, order="F")

    def factor(self, blocks: Array) -> BandedCholesky:
        """Factor the values (blocks, 3, 3) of the pattern's blocks."""
        return self.take(blocks.reshape(-1, 9)[self.band.source])

    def take(self, lower: Array) -> BandedCholesky:
        """Factor the values (source, 9) of the blocks that a factor reads, in its order."""
        self.buffer.fill(0.0)
        self.buffer[self.band.place] = lower.reshape(-1)
        if not self.band.size:  # LAPACK does not accept empty matrices
            return self
        with one_thread():
            _, info = lapack.dpbtrf(self.columns, lower=1, overwrite_ab=1)
        if info:
            raise NotDefinite.at(info, len(self.band.unknowns))
        return self

    def solve(self, b: Array) -> Array:
        """A⁻¹ b (3 nodes,) for the free nodes, 0 for the others."""
        found = np.zeros(len(b))
        if not self.band.size:
            return found
        x, _ = lapack.dpbtrs(self.columns, b[self.band.unknowns], lower=1, overwrite_b=1)
        found[self.band.unknowns] = x
        return found
