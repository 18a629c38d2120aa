"""Solves with the sparse factors of M, column by column in loops, for matrices of the same sparsity.

A column of such a matrix B is zero but for the joints that carry its joint and those that its joint carries: so is
U⁻¹ B, and only U⁻ᵀ fills it. Columns along a limb have the same zeros, so they are the same code: a `map` over the
columns of each limb. For n right-hand sides, O(n d²) operations for U⁻¹ and n times those of U for U⁻ᵀ, where a product
with M⁻¹ takes n times those of B, which has twice as many numbers as U.
"""

from typing import Any

import delassus.numpy as np
from delassus.compiler import map

SIMILAR = 1.5
"""Columns are computed with those before them that have up to so many times as many numbers that are not zero."""


def accelerations_by(above: list[list[int]], U: Any, D: Any, by_q: Any, by_v: Any) -> tuple[Any, Any, Any]:
    """-M⁻¹ by_q, -M⁻¹ by_v and M⁻¹ (n, n) for M = U D Uᵀ with `above` as in `factor`, by_q and by_v as sparse as M.

    Of M⁻¹ the lower triangle is computed and mirrored: its columns begin at the first one of their limb.
    """
    n, D_inv = len(above), 1.0 / D
    of_q, of_v, lower = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    # From the tips inwards: what a column leaves open above its limb is then mirrored from the columns that follow.
    for columns, rows in reversed(limbs(above)):
        solve = _solver(above, U, np.stack([-D_inv, -D_inv, D_inv], axis=1), columns, rows)
        derivatives = map(solve, by_q[rows][:, columns].T, by_v[rows][:, columns].T, np.eye(len(columns)))
        for total, part in zip((of_q, of_v, lower), derivatives, strict=True):
            total[:, columns] = part.T
    return of_q, of_v, np.tril(lower) + np.tril(lower, -1).T


def _solver(above: list[list[int]], U: Any, scale: Any, columns: list[int], rows: list[int]) -> Any:
    """The function of one column of by_q and by_v, in its rows, and of a unit matrix, in its limb."""
    n = len(above)
    below = set(range(columns[0], n))  # the rows of M⁻¹ that are needed, and those that they need
    for k in reversed(range(n)):
        below |= set(above[k]) if k in below else set()

    def solve(c_q: Any, c_v: Any, unit: Any) -> tuple[Any, Any, Any]:
        x = np.zeros((n, 3))
        x[rows, 0], x[rows, 1], x[columns, 2] = c_q, c_v, unit
        for k in reversed(rows):
            for i in above[k]:
                x[i] = x[i] - U[i, k] * x[k]
        for k in rows:
            x[k] = x[k] * scale[k]
        for k in range(n):
            width = 3 if k in below else 2
            for i in reversed(above[k]):  # sums begin with what is known for the longest time
                x[k, :width] = x[k, :width] - U[i, k] * x[i, :width]
        return x[:, 0], x[:, 1], x[:, 2]

    return solve


def limbs(above: list[list[int]]) -> list[tuple[list[int], list[int]]]:
    """The columns of a matrix with the sparsity of M in groups, each with the rows that U⁻¹ can leave in them.

    Columns with the same rows are a group. One that follows another, and whose rows are among those of that one, joins
    it if it has nearly as many: as a finger does that continues an arm, where code for itself would cost more.
    """
    groups: list[tuple[list[int], set[int]]] = []
    for j in range(len(above)):
        rows = {j, *above[j], *(k for k in range(len(above)) if j in above[k])}
        for k in sorted(rows, reverse=True):
            rows |= set(above[k])
        columns, members = groups[-1] if groups else ([], set())
        if rows <= members and len(members) <= SIMILAR * len(rows):
            columns.append(j)
        else:
            groups.append(([j], rows))
    return [(columns, sorted(rows)) for columns, rows in groups]


def outward(above: list[list[int]], U: Any, b: Any) -> Any:
    """U⁻ᵀ b (n,), as `forward` of `factor`, for the body of a loop.

    Sums begin with what is known for the longest time, so that one does not wait for the other.
    """
    x = np.array(b)
    for k in range(len(above)):
        for i in reversed(above[k]):
            x[k] = x[k] - U[i, k] * x[i]
    return x


def inverse_factor(above: list[list[int]], U: Any) -> Any:
    """U⁻¹ (n, n), which has the sparsity of U."""
    X = np.array(np.eye(len(above)))
    for k in reversed(range(len(above))):
        for i in above[k]:
            X[i] = X[i] - U[i, k] * X[k]
    return X
