"""LU factorization without pivoting: tiled straight-line code for small systems, loops for large ones.

n³/3 multiplications without branches, so all states of a batch follow the same path. For matrices whose pivots cannot
vanish: I - D + D G of Newton's method on contacts, and symmetric positive definite ones.
"""

from __future__ import annotations

from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import map
from delassus.linalg.products import WRITTEN_OUT, tiles

BLOCK: Final = 12
"""Number of rows that a loop eliminates together."""


def solve_without_pivots(A: Any, b: Any) -> Any:
    """Solve A x = b, with one or several columns, by Gaussian elimination in the given order, without row exchanges.

    n³/3 multiplications without branches. A pivot that is too small causes an inaccurate result, or NaN. Plain arrays
    use LAPACK.
    """
    if isinstance(A, numpy.ndarray):
        return numpy.linalg.solve(A, b)
    return _by_tiles(A, b) if len(b) <= WRITTEN_OUT else _by_blocks(A, b)


def _by_tiles(A: Any, b: Any) -> Any:
    """Elimination by tiles, whose values are read and written once.

    This takes a third of the time of the textbook's order for 36 rows.
    """
    n = len(b)
    A, x, inverse = [list(row) for row in A], list(b), [np.array(0.0)] * n

    def subtract(i: int, j: int, k: int) -> None:
        A[i][k] = A[i][k] - A[i][j] * A[j][k]

    for rows in tiles(n):
        for columns in tiles(n):
            for j in range(min(rows.start, columns.start)):
                for i in rows:
                    for k in columns:
                        subtract(i, j, k)
            if columns.start < rows.start:  # a tile of L
                for k in columns:
                    for i in rows:
                        for j in range(columns.start, k):
                            subtract(i, j, k)
                        A[i][k] = A[i][k] * inverse[k]
            elif columns.start > rows.start:  # a tile of U
                for i in rows:
                    for j in range(rows.start, i):
                        for k in columns:
                            subtract(i, j, k)
            else:
                for j in rows:
                    inverse[j] = 1.0 / A[j][j]
                    for i in range(j + 1, rows.stop):
                        A[i][j] = A[i][j] * inverse[j]
                        for k in range(j + 1, columns.stop):
                            subtract(i, j, k)
        for i in rows:
            for j in range(i):
                x[i] = x[i] - A[i][j] * x[j]
    for i in reversed(range(n)):
        for k in range(i + 1, n):
            x[i] = x[i] - A[i][k] * x[k]
        x[i] = x[i] * inverse[i]
    return np.stack(x)


def _by_blocks(A: Any, b: Any) -> Any:
    """Blocks of rows are eliminated one after the other, each by loops over the remaining rows and columns."""
    n, sides = len(b), b[:, None] if b.ndim == 1 else b
    remaining_rows, factored = np.concatenate([A, sides], 1), []
    for start in range(0, n, BLOCK):
        k = min(BLOCK, n - start)
        factors = _Factors(remaining_rows[:k, :k])
        upper = map(lambda column, f=factors: f.forward(column), remaining_rows[:k, k:].T).T
        factored.append((factors, upper))
        if start + k < n:
            remaining_rows = map(
                lambda first, right_part, f=factors, u=upper: right_part - f.backward(first) @ u,
                remaining_rows[k:, :k],
                remaining_rows[k:, k:],
            )
    x = np.zeros((0, sides.shape[1]))
    for factors, upper in reversed(factored):
        right_part = upper[:, len(x) :] - (upper[:, : len(x)] @ x if len(x) else 0.0)
        x = np.concatenate([factors.solve_upper(right_part), x])
    return x.reshape(b.shape)


class _Factors:
    """A small matrix as L U, L with ones on its diagonal."""

    def __init__(self, A: Any) -> None:
        n = len(A)
        self.A, self.inverse = [list(row) for row in A], [np.array(0.0)] * n
        for j in range(n):
            self.inverse[j] = 1.0 / self.A[j][j]
            for i in range(j + 1, n):
                self.A[i][j] = self.A[i][j] * self.inverse[j]
                for k in range(j + 1, n):
                    self.A[i][k] = self.A[i][k] - self.A[i][j] * self.A[j][k]

    def forward(self, b: Any) -> Any:
        """L⁻¹ b."""
        x = list(b)
        for i in range(len(x)):
            for j in range(i):
                x[i] = x[i] - self.A[i][j] * x[j]
        return np.stack(x)

    def backward(self, row: Any) -> Any:
        """b U⁻¹ of a row b."""
        x = list(row)
        for j in range(len(x)):
            for i in range(j):
                x[j] = x[j] - x[i] * self.A[i][j]
            x[j] = x[j] * self.inverse[j]
        return np.stack(x)

    def solve_upper(self, b: Any) -> Any:
        """U⁻¹ b."""
        x = list(b)
        for i in reversed(range(len(x))):
            for j in range(i + 1, len(x)):
                x[i] = x[i] - self.A[i][j] * x[j]
            x[i] = x[i] * self.inverse[i]
        return np.stack(x)
