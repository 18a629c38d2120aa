"""Cholesky factors K = L Lᵀ of positive definite systems with several right-hand sides, in register tiles.

n³/6 multiplications and n square roots for the factor, n² multiplications for each right-hand side. Choose it from a
dozen rows on; choose `ldl` for smaller matrices, or if zeros of the matrix are known.
"""

from __future__ import annotations

from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.trace import trace_of
from delassus.linalg.products import tiles

WRITTEN_OUT: Final = 64
"""Maximum number of unknowns for unrolled elimination; larger systems use a loop, which is slower."""


class Cholesky:
    """L Lᵀ of a symmetric, positive definite matrix, given by its lower triangle."""

    def __init__(self, K: Any) -> None:
        self.n = len(K)
        self.plain = trace_of(K) is None
        if self.plain:
            self.whole = numpy.tril(K) + numpy.tril(K, -1).T
        elif self.n > WRITTEN_OUT:
            self.whole = np.tril(K) + np.tril(K, -1).T
        else:
            self._eliminate([[K[i, j] for j in range(i + 1)] for i in range(self.n)])

    def _eliminate(self, L: list[list[Any]]) -> None:
        """In place, all terms of a tile at once. Only one triangle is stored: two would not fit into the cache of a
        core.
        """
        self.L, self.inverse = L, [np.array(0.0)] * self.n
        for columns in tiles(self.n):
            for rows in tiles(self.n):
                if rows.start < columns.start:
                    continue
                for k in range(columns.start):
                    for i in rows:
                        for j in columns:
                            if j <= i:
                                L[i][j] = L[i][j] - L[i][k] * L[j][k]
                for j in columns:
                    for k in range(columns.start, j):
                        for i in rows:
                            if i >= j:
                                L[i][j] = L[i][j] - L[i][k] * L[j][k]
                    if rows.start == columns.start:
                        self.inverse[j] = 1.0 / np.sqrt(L[j][j])
                    for i in rows:
                        if i > j:
                            L[i][j] = L[i][j] * self.inverse[j]

    def solve(self, b: Any) -> Any:
        """x with L Lᵀ x = b."""
        if self.plain:
            try:
                L = numpy.linalg.cholesky(self.whole)  # NaN where K is not positive definite, as in compiled code
                return numpy.linalg.solve(L.T, numpy.linalg.solve(L, b))
            except numpy.linalg.LinAlgError:
                return numpy.full(self.n, numpy.nan)
        if self.n > WRITTEN_OUT:
            return np.linalg.solve(self.whole, b)
        x = list(b)
        for j in range(self.n):
            x[j] = x[j] * self.inverse[j]
            for i in range(j + 1, self.n):
                x[i] = x[i] - self.L[i][j] * x[j]
        for i in reversed(range(self.n)):
            for k in range(i + 1, self.n):
                x[i] = x[i] - self.L[k][i] * x[k]
            x[i] = x[i] * self.inverse[i]
        return np.stack(x)
