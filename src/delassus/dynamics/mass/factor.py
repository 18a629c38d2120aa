"""Sparse factors of the mass matrix, M = U D Uᵀ, and solves with them.

U is unit upper triangular and has the sparsity of the tree: U_ij is zero unless i is an ancestor of j. No fill-in,
O(n d²) operations for depth d. Choose it over `aba` for many right-hand sides, or for M⁻¹. Reference:
R. Featherstone, Rigid Body Dynamics Algorithms (2008), section 6.5 (there as LᵀDL).
"""

from collections.abc import Sequence
from typing import Any

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.dynamics.mass.crba import mass_matrix
from delassus.dynamics.tree.check import check_inertias
from delassus.model.links import links_of
from delassus.model.model import Model


@kernel("(nq)->(nv,nv),(nv)")
def udu(model: Model, q: Traced) -> tuple[Floats, Floats]:
    """The factors U (nv, nv), unit upper triangular, and D (nv,), its diagonal, with M = U D Uᵀ.

    >>> robot = dl.load("double_pendulum")
    >>> U, D = dl.dynamics.udu(robot, np.array([0.1, 0.2]))
    >>> bool(np.allclose(U * D @ U.T, dl.crba(robot, np.array([0.1, 0.2]))))
    True
    """
    check_inertias(model)
    U, D = factor_tree(ancestors(model), mass_matrix(model, q))
    return U, D


@kernel("(nq),(nv)->(nv)")
def udu_solve(model: Model, q: Traced, b: Traced) -> Floats:
    """M(q)⁻¹ b (nv,).

    >>> robot, q = dl.load("double_pendulum"), np.array([0.1, 0.2])
    >>> x = dl.dynamics.udu_solve(robot, q, np.ones(2))
    >>> bool(np.allclose(dl.crba(robot, q) @ x, 1.0))
    True
    """
    check_inertias(model)
    above = ancestors(model)
    U, D = factor_tree(above, mass_matrix(model, q))
    return substitute(above, U, D, b)


@kernel("(nq)->(nv,nv)")
def inverse_mass_matrix(model: Model, q: Traced) -> Floats:
    """M(q)⁻¹ (nv, nv), symmetric and complete.

    >>> robot, q = dl.load("double_pendulum"), np.array([0.1, 0.2])
    >>> bool(np.allclose(dl.dynamics.inverse_mass_matrix(robot, q) @ dl.crba(robot, q), np.eye(2)))
    True
    """
    check_inertias(model)
    above, n = ancestors(model), model.nv
    U, D = factor_tree(above, mass_matrix(model, q))
    columns = [substitute(above, U, D, np.eye(n)[:, k]) for k in range(n)]
    inverse = np.stack(columns, axis=1) if columns else np.zeros((0, 0))
    return np.tril(inverse) + np.tril(inverse, -1).T


def ancestors(model: Model, groups: Sequence[Sequence[int]] = ()) -> list[list[int]]:
    """For each velocity, the earlier ones that M couples it with, nearest first.

    In a tree these are the velocities of ancestor joints. Joints that share a coordinate (mimic joints) and closed
    loops, whose velocities are `groups`, couple more of them. Fill-in by the elimination is included.
    """
    tree = links_of(model)
    coupled: list[set[int]] = [set() for _ in range(model.nv)]
    pairs = (([*link.dofs], [v for i in tree.path(k) for v in tree.links[i].dofs]) for k, link in enumerate(tree.links))
    for movers, moved_dofs in (*pairs, *((group, group) for group in groups)):
        for a in movers:
            for b in moved_dofs:
                if a != b:
                    coupled[max(a, b)].add(min(a, b))
    for k in reversed(range(model.nv)):
        for i in coupled[k]:
            coupled[i] |= {j for j in coupled[k] if j < i}
    return [sorted(c, reverse=True) for c in coupled]


def factor_tree(above: list[list[int]], M: Any) -> tuple[Any, Any]:
    """U and D of a matrix with the sparsity of a tree, from the leaves to the root."""
    n = len(above)
    A = np.array(M)
    U, D = np.array(np.eye(n)), np.zeros(n)
    for k in reversed(range(n)):
        D[k] = A[k, k]
        inverse = 1.0 / A[k, k]
        for i in above[k]:
            U[i, k] = A[i, k] * inverse
            for j in above[k]:
                if j <= i:
                    A[j, i] = A[j, i] - A[j, k] * U[i, k]
    return U, D


def substitute(above: list[list[int]], U: Any, D: Any, b: Any) -> Any:
    """x with U D Uᵀ x = b."""
    return forward(above, U, backward(above, U, b) / D)


def backward(above: list[list[int]], U: Any, b: Any, only: Sequence[int] | None = None) -> Any:
    """U⁻¹ b; with `only`, for a b that is zero at all other velocities. `only` must include all ancestors."""
    x = np.array(b)
    for k in reversed(range(len(above)) if only is None else only):
        for i in above[k]:
            x[i] = x[i] - U[i, k] * x[k]
    return x


def forward(above: list[list[int]], U: Any, b: Any, only: Sequence[int] | None = None) -> Any:
    """U⁻ᵀ b; with `only`, at these velocities, which must include all ancestors; the others are those of b."""
    x = np.array(b)
    for k in range(len(above)) if only is None else only:
        for i in above[k]:
            x[k] = x[k] - U[i, k] * x[i]
    return x
