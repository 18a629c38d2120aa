"""Sums of outer products, and positive definite equations, in the order of tiles that stay in registers."""

from __future__ import annotations

from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.trace import trace_of

TILE: Final = 4
"""Rows and columns of a tile: 16 sums and 8 factors fit into the registers."""

WRITTEN_OUT: Final = 64
"""Unknowns up to which the code of an elimination is written out."""


def tiles(n: int) -> list[range]:
    """The numbers below n, some at a time."""
    return [range(s, min(s + TILE, n)) for s in range(0, n, TILE)]


def gram(left: Any, right: Any) -> Any:
    """leftᵀ right (n, n), its lower triangle, the upper one zero; it is known to be symmetric."""
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


class Factor:
    """L D Lᵀ of a symmetric, positive definite matrix, of which the lower triangle is read."""

    def __init__(self, K: Any) -> None:
        self.n = len(K)
        self.plain = trace_of(K) is None
        if self.plain:
            whole = numpy.tril(K) + numpy.tril(K, -1).T
            self.whole = whole if numpy.isfinite(whole).all() else numpy.full_like(whole, numpy.nan)
        else:
            self._eliminate([[K[i, j] for j in range(i + 1)] for i in range(self.n)])

    def _eliminate(self, L: list[list[Any]]) -> None:
        """L D in the lower triangle and L beside it: a tile's sums are made in one go."""
        n = self.n
        inverse = [np.array(0.0)] * n
        scaled: list[list[Any]] = [[None] * (i + 1) for i in range(n)]  # L, while L holds L D
        for columns in tiles(n):
            for rows in tiles(n):
                if rows.start < columns.start:
                    continue
                for k in range(columns.start):
                    for i in rows:
                        for j in columns:
                            if j <= i:
                                L[i][j] = L[i][j] - L[i][k] * scaled[j][k]
                for j in columns:
                    for k in range(columns.start, j):
                        for i in rows:
                            if i >= j:
                                L[i][j] = L[i][j] - L[i][k] * scaled[j][k]
                    if rows.start == columns.start:
                        inverse[j] = 1.0 / L[j][j]
                    for i in rows:
                        if i > j:
                            scaled[i][j] = L[i][j] * inverse[j]
        self.L, self.inverse = scaled, inverse

    def solve(self, b: Any) -> Any:
        """x with L D Lᵀ x = b."""
        if self.plain:
            try:
                return numpy.linalg.solve(self.whole, b)
            except numpy.linalg.LinAlgError:
                return numpy.full(self.n, numpy.nan)
        x = list(b)
        for columns in tiles(self.n):
            for j in columns:
                for i in range(j + 1, self.n):
                    x[i] = x[i] - self.L[i][j] * x[j]
        for i in reversed(range(self.n)):
            x[i] = x[i] * self.inverse[i]
            for k in range(i + 1, self.n):
                x[i] = x[i] - self.L[k][i] * x[k]
        return np.stack(x)
