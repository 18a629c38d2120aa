"""Solves with the sparse factors of M, for right-hand sides with the sparsity of M, column by column.

In column j of such a matrix B, only the rows of ancestors and descendants of joint j are nonzero. U⁻¹ B has the same
sparsity, and U⁻ᵀ fills it in. The columns of a limb have the same zeros and share code: a `map` over these columns.
For n right-hand sides, U⁻¹ takes O(n d²) operations and U⁻ᵀ n times the nonzeros of U. A product with M⁻¹ would take n
times the nonzeros of B, which are twice as many.
"""

from typing import Any

import delassus.numpy as np
from delassus.compiler import map

SIMILAR = 1.5
"""Largest ratio of the numbers of nonzero entries of columns that share code."""


def accelerations_by(above: list[list[int]], U: Any, D: Any, by_q: Any, by_v: Any) -> tuple[Any, Any, Any]:
    """-M⁻¹ by_q, -M⁻¹ by_v and M⁻¹ (n, n) for M = U D Uᵀ with `above` as in `factor`, by_q and by_v as sparse as M.

    Only the lower triangle of M⁻¹ is computed, with columns that start at the first row of their limb; it is mirrored.
    """
    n, D_inv = len(above), 1.0 / D
    of_q, of_v, lower = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    # From the tips inwards: rows above the limb of a column are then mirrored from the columns that follow.
    for columns, rows in reversed(limbs(above)):
        solve = _solver(above, U, np.stack([-D_inv, -D_inv, D_inv], axis=1), columns, rows)
        derivatives = map(solve, by_q[rows][:, columns].T, by_v[rows][:, columns].T, np.eye(len(columns)))
        for total, part in zip((of_q, of_v, lower), derivatives, strict=True):
            total[:, columns] = part.T
    return of_q, of_v, np.tril(lower) + np.tril(lower, -1).T


def _solver(above: list[list[int]], U: Any, scale: Any, columns: list[int], rows: list[int]) -> Any:
    """The solve for one column of by_q and of by_v, as their `rows`, and of the unit matrix, as its `columns`."""
    n = len(above)
    below = set(range(columns[0], n))  # the rows of M⁻¹ that are results, and the rows that these depend on
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
            for i in reversed(above[k]):  # sums start with the terms that were computed first
                x[k, :width] = x[k, :width] - U[i, k] * x[i, :width]
        return x[:, 0], x[:, 1], x[:, 2]

    return solve


def limbs(above: list[list[int]]) -> list[tuple[list[int], list[int]]]:
    """Groups of columns that share code, for a matrix with the sparsity of M; each with the nonzero rows after U⁻¹.

    Columns with the same rows are a group. A column whose rows are a subset of those of the group before joins it if
    the group has at most `SIMILAR` times as many. An example is a finger that continues an arm: a group of its own
    would need code of its own.
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
    """U⁻ᵀ b (n,), like `forward` of `factor`, for the body of a loop.

    Sums start with the terms that were computed first, so that the processor does not wait for the latest ones.
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
