"""Products of dense matrices: tiles that stay in registers, or loops where straight-line code would be long.

A tile is `TILE` rows by `TILE` columns of a result. Its 9 sums and the 6 factors of a term stay in registers while the
sums are made, so every value is read once a tile. The order of the loops is the speed of the code.
"""

from __future__ import annotations

from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import map
from delassus.compiler.tracing.operations.products import TILE
from delassus.compiler.tracing.trace import trace_of

WRITTEN_OUT: Final = 36
"""Rows up to which products and eliminations of general matrices are written out as straight-line code."""


def tiles(n: int) -> list[range]:
    """The numbers below n in groups of `TILE`."""
    return [range(start, min(start + TILE, n)) for start in range(0, n, TILE)]


def gram(left: Any, right: Any) -> Any:
    """The lower triangle of leftᵀ right (n, n), known to be symmetric; the upper triangle is zero.

    Terms are added in the order of the rows of `left` and `right` (k, n).
    """
    n = left.shape[1]
    if trace_of(left, right) is None:
        return numpy.tril(left.T @ right)
    total = np.zeros((n, n))
    for rows in tiles(n):
        for columns in tiles(rows.stop):
            for r in range(len(left)):
                for i in rows:
                    for j in columns:
                        if j <= i:
                            total[i, j] = total[i, j] + left[r, i] * right[r, j]
    return total


def multiply(A: Any, x: Any) -> Any:
    """A x (n,): a loop over rows where A has more than `WRITTEN_OUT` of them."""
    if len(A) <= WRITTEN_OUT or isinstance(A, numpy.ndarray):
        return A @ x
    return map(lambda row: np.sum(row * x), A)


def mirror(A: Any) -> Any:
    """The symmetric matrix with the lower triangle of A, so that each pair of entries is computed once."""
    B = np.array(A)
    for j in range(len(B)):
        for i in range(j):
            B[i, j] = A[j, i]
    return B
