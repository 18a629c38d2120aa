"""The part of the sparse factors of [·, J; Jᵀ, M] that belongs to the tree, and the resulting Delassus matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.dynamics.mass.crba import mass_matrix
from delassus.dynamics.mass.factor import ancestors, factor_tree
from delassus.linalg.products import gram, tiles
from delassus.model.model import Model


class RankOne(NamedTuple):
    """`coefficient` r rᵀ, added to M: what resists the motion r·v of several joints at once, such as a tendon.

    `moment_arms` are r (nv,), which are zero but for the velocities `dofs`; the coefficient is in kg, for r·v in m/s.
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

    Velocities that are `locked`, by their numbers, have no part in it: M⁻¹ is that of the others, and zero for them.
    With `added` (nv,), M has it on its diagonal: damping and servos of a step of time. With `rank_ones` it has what
    resists several joints at once; elimination then couples what these couple.
    """
    above = ancestors(model, [list(term.dofs) for term in rank_ones])
    M, X = np.array(mass_matrix(model, q)), np.array(J)
    if added is not None:
        M = M + np.diag(added)
    for term in rank_ones:
        for i in term.dofs:
            for j in term.dofs:
                M[i, j] = M[i, j] + term.coefficient * (term.moment_arms[i] * term.moment_arms[j])
    for k in locked:  # alone, and without any row: nothing moves it, and it moves nothing
        M[k, :], M[:, k], X[:, k] = 0.0, 0.0, 0.0
        M[k, k] = 1.0
    U, D = factor_tree(above, M)
    return TreeFactor(above, U, D, *eliminate_rows_of(above, U, D, X))


def eliminate_rows_of(above: list[list[int]], U: Any, D: Any, J: Any) -> tuple[Any, Any]:
    """Y = J Uᵀ⁻¹ D⁻¹ (m, nv), and the lower triangle of J M⁻¹ Jᵀ = Y D Yᵀ (m, m), of rows J (m, nv)."""
    X, inverse, Y = np.array(J), 1.0 / D, np.zeros(J.shape)
    for rows in tiles(len(J)):
        for k in reversed(range(len(above))):
            for r in rows:
                Y[r, k] = X[r, k] * inverse[k]
            for i in above[k]:
                for r in rows:
                    X[r, i] = X[r, i] - U[i, k] * X[r, k]
    # X Yᵀ, its terms from the leaves to the root.
    return Y, gram(X.T[::-1], Y.T[::-1])
