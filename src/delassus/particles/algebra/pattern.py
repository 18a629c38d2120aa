"""Sparse symmetric matrices of 3 × 3 blocks with a pattern that is computed once.

A node is a vector of three unknowns. Element e has blocks for all pairs of its nodes, and the matrix is their sum. The
sum is a product of a sparse matrix P of ones (blocks × pairs) and the blocks of the pairs (pairs, 9): a single pass
over memory, without a search.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]


class Pattern:
    """The block sparsity pattern of a matrix.

    Attributes:
        nodes: Number of block rows.
        indptr, indices: Of the blocks, row by row in order of columns, including the diagonal.
        sums: The matrix P for each group of elements.
    """

    def __init__(self, nodes: int, groups: Sequence[NDArray[np.int64]]) -> None:
        """Create from groups of elements, each given by its nodes (e, k)."""
        pairs = [_pairs(group, nodes) for group in groups]
        diagonal = np.arange(nodes, dtype=np.int64) * (nodes + 1)
        keys = np.unique(np.concatenate([diagonal, *pairs]))
        self._take(nodes, keys, pairs)

    def _take(self, nodes: int, keys: NDArray[np.int64], pairs: Sequence[NDArray[np.int64]]) -> None:
        self.nodes, self.keys = nodes, keys
        self.rows, self.indices = np.divmod(keys, nodes)
        self.indptr = np.searchsorted(self.rows, np.arange(nodes + 1))
        self.diagonal = np.searchsorted(keys, np.arange(nodes, dtype=np.int64) * (nodes + 1))
        self.sums = [_sum(np.searchsorted(keys, pair), len(keys)) for pair in pairs]

    @classmethod
    def extend(cls, base: Pattern, groups: Sequence[NDArray[np.int64]]) -> Pattern:
        """The pattern of `base` plus further groups of elements; `sums` are those of these groups."""
        pattern = cls.__new__(cls)
        pairs = [_pairs(group, base.nodes) for group in groups]
        keys = base.keys if all(g.shape[1] == 1 for g in groups) else np.unique(np.concatenate([base.keys, *pairs]))
        pattern._take(base.nodes, keys, pairs)
        return pattern

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(self.indices)

    def sum_blocks(self, parts: Iterable[tuple[int, Array]]) -> Array:
        """The blocks (blocks, 3, 3) of the sum of groups' blocks (e, k, k, 3, 3), given with the groups' indices."""
        total: Any = None
        for number, part in parts:
            added = self.sums[number] @ part.reshape(-1, 9)
            total = added if total is None else np.add(total, added, out=total)
        return np.zeros((self.blocks, 3, 3)) if total is None else total.reshape(-1, 3, 3)

    def matrix(self, blocks: Array) -> sparse.bsr_matrix:
        """The matrix of blocks (blocks, 3, 3), without a copy."""
        return sparse.bsr_matrix((blocks, self.indices, self.indptr), shape=(3 * self.nodes, 3 * self.nodes))

    def places(self, other: Pattern) -> NDArray[np.int64]:
        """Positions of the blocks of `other` in this pattern, which extends it."""
        return np.searchsorted(self.keys, other.keys)


def _pairs(group: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """The index row · nodes + column of each pair of an element's nodes, (e k k)."""
    return (group[:, :, None] * nodes + group[:, None, :]).reshape(-1)


def _sum(position: NDArray[np.int64], blocks: int) -> Any:
    count = len(position)
    order = np.argsort(position, kind="stable")
    indptr = np.searchsorted(position[order], np.arange(blocks + 1))
    return sparse.csr_matrix((np.ones(count), order, indptr), shape=(blocks, count))
