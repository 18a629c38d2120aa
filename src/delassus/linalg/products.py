"""Products of dense matrices: tiles that stay in registers, or loops where straight-line code would be long.

A tile is `TILE` rows by `TILE` columns of a result. Its 9 sums and the 6 factors of a term stay in registers, so every
value is read once per tile. The loop order determines the speed.
"""

from __future__ import annotations

from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import map
from delassus.compiler.tracing.operations.products import ROWS, TILE
from delassus.compiler.tracing.trace import trace_of

WRITTEN_OUT: Final = 36
"""Maximum number of rows for which products and eliminations of general matrices are unrolled."""

LONGEST_GRAM: Final = 8000
"""Maximum number of terms of unrolled symmetric products; zeros known at compile time do not count."""


def tiles(n: int) -> list[range]:
    """The integers below n in groups of `TILE`."""
    return [range(start, min(start + TILE, n)) for start in range(0, n, TILE)]


def gram(left: Any, right: Any) -> Any:
    """The lower triangle of the symmetric leftᵀ right (n, n); the upper triangle is zero.

    Terms are added in the order of the rows of `left` and `right` (k, n).
    """
    n = left.shape[1]
    trace = trace_of(left, right)
    if trace is None:
        return numpy.tril(left.T @ right)
    if _count_terms(trace.lift(left).ids, trace.lift(right).ids) > LONGEST_GRAM:
        return _gram_in_loops(left, right)
    total = np.zeros((n, n))
    for rows in tiles(n):
        for columns in tiles(rows.stop):
            for r in range(len(left)):
                for i in rows:
                    for j in columns:
                        if j <= i:
                            total[i, j] = total[i, j] + left[r, i] * right[r, j]
    return total


def _count_terms(left: Any, right: Any) -> int:
    """The number of nonzero terms (i, j), j ≤ i, of leftᵀ right, by the structure of their entries."""
    before = numpy.cumsum(right != 0, axis=1)
    return int(numpy.sum((left != 0) * before))


def _gram_in_loops(left: Any, right: Any) -> Any:
    """`gram` with code for `ROWS` rows of the result and a loop over their columns, up to the diagonal block."""
    n, blocks = left.shape[1], []
    for start in range(0, n, ROWS):
        rows, end = left[:, start : start + ROWS], min(start + ROWS, n)

        def sum_terms(column: Any, rows: Any = rows) -> Any:
            total = np.zeros(rows.shape[1])
            for r in range(len(column)):
                total = total + rows[r] * column[r]
            return total

        block = map(sum_terms, right[:, :end].T).T
        blocks.append(np.concatenate([block, np.zeros((end - start, n - end))], 1))
    return np.tril(np.concatenate(blocks))


def multiply(A: Any, x: Any) -> Any:
    """A x (n,): a loop over rows if A has more than `WRITTEN_OUT` of them."""
    if len(A) <= WRITTEN_OUT or isinstance(A, numpy.ndarray):
        return A @ x
    return map(lambda row: np.sum(row * x), A)


def mirror(A: Any) -> Any:
    """The symmetric matrix with the lower triangle of A; each pair of entries is computed once."""
    B = np.array(A)
    for j in range(len(B)):
        for i in range(j):
            B[i, j] = A[j, i]
    return B
