"""The part of the sparse factors of [·, J; Jᵀ, M] that belongs to the tree, and the resulting Delassus matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import map
from delassus.compiler.tracing.trace import trace_of
from delassus.dynamics.mass.crba import mass_matrix
from delassus.dynamics.mass.factor import ancestors, factor_tree
from delassus.linalg.products import gram, tiles
from delassus.model.model import Model

LONGEST_ELIMINATION: Final = 4000
"""Maximum number of multiplications for which the elimination of rows is unrolled."""


class RankOne(NamedTuple):
    """`coefficient` r rᵀ, added to M: resistance to a common motion r·v of several joints, such as that of a tendon.

    `moment_arms` are r (nv,), zero except for the velocities `dofs`; the coefficient is in kg, for r·v in m/s.
    """

    moment_arms: Any
    coefficient: Any
    dofs: tuple[int, ...]

    def times(self, v: Any) -> Any:
        """Its product with v (nv,)."""
        return self.moment_arms * (self.coefficient * (self.moment_arms @ v))


@dataclass(frozen=True)
class TreeFactor:
    """M = U D Uᵀ, Y = J Uᵀ⁻¹ D⁻¹ (m, nv), and the lower triangle of `delassus`, J M⁻¹ Jᵀ = Y D Yᵀ (m, m)."""

    above: list[list[int]]
    U: Any
    D: Any
    Y: Any
    delassus: Any


def tree_factor(
    model: Model, q: Any, J: Any, locked: tuple[int, ...] = (), added: Any = None, rank_ones: Sequence[RankOne] = ()
) -> TreeFactor:
    """Eliminate the velocities, from the leaves to the root, from M and from the rows of J (m, nv).

    Velocities that are `locked`, by index, are excluded: M⁻¹ is that of the others, and zero for them. `added` (nv,) is
    added to the diagonal of M: dampers and servos of a time step. `rank_ones` add resistances to common motions of
    several joints; elimination then couples these joints.
    """
    above = ancestors(model, [list(term.dofs) for term in rank_ones])
    M, X = np.array(mass_matrix(model, q)), np.array(J)
    if added is not None:
        M = M + np.diag(added)
    for term in rank_ones:
        for i in term.dofs:
            for j in term.dofs:
                M[i, j] = M[i, j] + term.coefficient * (term.moment_arms[i] * term.moment_arms[j])
    for k in locked:  # isolated, and without any row
        M[k, :], M[:, k], X[:, k] = 0.0, 0.0, 0.0
        M[k, k] = 1.0
    U, D = factor_tree(above, M)
    return TreeFactor(above, U, D, *eliminate_rows_of(above, U, D, X))


def eliminate_rows_of(above: list[list[int]], U: Any, D: Any, J: Any) -> tuple[Any, Any]:
    """Y = J Uᵀ⁻¹ D⁻¹ (m, nv), and the lower triangle of J M⁻¹ Jᵀ = Y D Yᵀ (m, m), of rows J (m, nv)."""
    X, inverse, Y = np.array(J), 1.0 / D, np.zeros(J.shape)
    dense = _dense_rows(above, J)
    if dense:
        X[dense] = map(lambda row: _eliminate(above, U, row), X[dense])
        Y[dense] = X[dense] * inverse
    for rows in tiles(len(J)):
        sparse = [r for r in rows if r not in dense]
        for k in reversed(range(len(above) if sparse else 0)):
            for r in sparse:
                Y[r, k] = X[r, k] * inverse[k]
            for i in above[k]:
                for r in sparse:
                    X[r, i] = X[r, i] - U[i, k] * X[r, k]
    # X Yᵀ, with terms from the leaves to the root.
    return Y, gram(X.T[::-1], Y.T[::-1])


def _eliminate(above: list[list[int]], U: Any, row: Any) -> Any:
    """J Uᵀ⁻¹ of one row (nv,)."""
    x = np.array(row)
    for k in reversed(range(len(above))):
        for i in above[k]:
            x[i] = x[i] - U[i, k] * x[k]
    return x


def _dense_rows(above: list[list[int]], J: Any) -> list[int]:
    """Rows that are eliminated in a loop: the densest ones, if unrolled code would be long."""
    trace = trace_of(J)
    if trace is None:
        return []
    filled = numpy.count_nonzero(trace.lift(J).ids, axis=1)
    rows = [r for r in range(len(J)) if 2 * filled[r] > len(above)]
    return rows if len(rows) * sum(len(some) for some in above) > LONGEST_ELIMINATION else []
