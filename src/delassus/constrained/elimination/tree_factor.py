"""The part of the sparse factors of [·, J; Jᵀ, M] that belongs to the tree, and the Delassus matrix that it leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.dynamics.mass.crba import mass_matrix
from delassus.dynamics.mass.factor import ancestors, factor_tree
from delassus.model.model import Model


@dataclass(frozen=True)
class TreeFactor:
    """M = U D Uᵀ, Y = J Uᵀ⁻¹ D⁻¹ (m, nv), and the lower triangle of `delassus`, J M⁻¹ Jᵀ = Y D Yᵀ (m, m)."""

    above: list[list[int]]
    U: Any
    D: Any
    Y: Any
    delassus: Any


def tree_factor(model: Model, q: Any, J: Any, locked: tuple[int, ...] = (), added: Any = None) -> TreeFactor:
    """Eliminate the velocities, from the leaves to the root, from M and from the rows of J (m, nv).

    Velocities that are `locked`, by their numbers, have no part in it: M⁻¹ is that of the others, and zero for them.
    With `added` (nv,), M has it on its diagonal: damping and servos of a step of time.
    """
    above = ancestors(model)
    M, X = np.array(mass_matrix(model, q)), np.array(J)
    if added is not None:
        M = M + np.diag(added)
    for k in locked:  # alone, and without any row: nothing moves it, and it moves nothing
        M[k, :], M[:, k], X[:, k] = 0.0, 0.0, 0.0
        M[k, k] = 1.0
    U, D = factor_tree(above, M)
    m = len(J)
    Y = np.zeros(J.shape)
    G = np.zeros((m, m))
    for k in reversed(range(model.nv)):
        Y[:, k] = X[:, k] * (1.0 / D[k])
        for i in above[k]:
            X[:, i] = X[:, i] - U[i, k] * X[:, k]
        for r in range(m):
            G[r, : r + 1] = G[r, : r + 1] + X[r, k] * Y[: r + 1, k]
    return TreeFactor(above, U, D, Y, G)
