"""Sparse Newton systems of large piles, factored by SuperLU.

Used only if SciPy is installed. Otherwise the equations are solved as dense ones, with the same results up to rounding.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np

from delassus.contact.cones.layout import Layout
from delassus.contact.large.rows import Array, Indices, Rows, groups_of
from delassus.linalg.filtered_system import regularization

_ROWS: Final = 300
"""Number of rows above which sparse equations are faster."""

_DENSITY: Final = 0.1
"""Maximum fraction of nonzero entries for which they are."""


@lru_cache(1)
def _scipy() -> Any:
    """`scipy.sparse` and `splu`, or None where SciPy is not installed."""
    try:
        from scipy import sparse
        from scipy.sparse.linalg import splu
    except ImportError:
        return None
    return sparse, splu


def sparse_matrices(rows: Rows) -> list[Any] | None:
    """G of each problem as a sparse matrix, or None if dense equations are faster."""
    m = rows.layout.m
    if m < _ROWS or np.count_nonzero(rows.G) > _DENSITY * rows.G.size or _scipy() is None:
        return None
    sparse, _ = _scipy()
    return [sparse.csr_matrix(G) for G in rows.G]


def solve_sparse(rows: Rows, matrices: list[Any], jacobians: list[Array], gap: Array) -> Array:
    """(I - D + D G)⁻¹ gap (B, m), not finite where the matrix is singular."""
    sparse, splu = _scipy()
    at = _places(rows.layout)
    values = np.concatenate([jacobians[0], *(D.reshape(len(D), -1) for D in jacobians[1:])], 1)
    one = sparse.identity(rows.layout.m, format="csr")
    steps = np.full_like(gap, np.nan)
    for k, (G, diagonal) in enumerate(zip(matrices, values, strict=True)):
        D = sparse.csr_matrix((diagonal, (at[0], at[1])), shape=G.shape)
        K = (D @ G + (1.0 + regularization()) * one - D).tocsc()
        try:
            steps[k] = splu(K).solve(gap[k])
        except (RuntimeError, ValueError):  # a zero pivot, or NaN
            continue
    return steps


@lru_cache(32)
def _places(layout: Layout) -> tuple[Indices, Indices]:
    """The rows and columns of the entries of D, in the order of its blocks."""
    scalars = np.arange(layout.scalars)
    rows_of_entries, columns = [scalars], [scalars]
    for group in groups_of(layout):
        size = group.rows.shape[1]
        rows_of_entries.append(np.repeat(group.rows, size, axis=1).ravel())
        columns.append(np.tile(group.rows, (1, size)).ravel())
    return np.concatenate(rows_of_entries), np.concatenate(columns)
