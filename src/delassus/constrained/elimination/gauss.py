"""Gauss' principle by singular values: the answer whatever the rank, to the last digits, compiled.

With M = U D Uᵀ and x = D^½ Uᵀ a, the length of x - x_free is the one that Gauss' principle makes least, and

    M a = h + Jᵀ λ,   J a + γ + C λ = 0     become     x = x_free + Bᵀ λ̂,   B x + γ̂ = 0,
    B = E^-½ [J Uᵀ⁻¹ D^-½, C^½],   λ̂ = E^½ λ,   γ̂ = E^-½ γ,

E the weights of the rows (compliance is motion of its own, along which x begins at 0). B is orthogonal vectors times an
orthogonal matrix (`jacobi`). Each of its singular values s is either kept, which takes off all that B x + γ̂ has along
it, or so small that it counts as zero, which leaves it: so x is the answer of least squares, and λ̂ the smallest. The
digits that J M⁻¹ Jᵀ would square away are there: s² is compared, s computed.

O(m n min(m, n)) operations a sweep of the singular values, some 50 times those of a proximal solve. Choose it where
these do not settle: near singular poses.
"""

from __future__ import annotations

from typing import Any, Final

import delassus.numpy as np
from delassus.constrained.elimination.jacobi import orthogonal
from delassus.constrained.elimination.tree_factor import TreeFactor
from delassus.dynamics.mass.factor import backward, forward

RANK: Final = 1e-12
"""Squares of singular values below this share of the largest count as zero, and so do eigenvalues of J M⁻¹ Jᵀ."""


def by_singular_values(
    tree: TreeFactor,
    h: Any,
    gamma: Any,
    epsilon: Any,
    softness: Any = None,
    rank: Any = RANK,
) -> tuple[Any, Any]:
    """Accelerations (nv,) and forces (m,), from M and J as `tree_factor` has them, h = tau - c (nv,) and γ (m,).

    `softness` (m,) is the root of the compliance, if there is any.
    """
    weight = 1.0 / np.sqrt(epsilon)
    root = np.sqrt(tree.D)
    B = tree.Y * root * weight[:, None]
    free = backward(tree.above, tree.U, h) / root
    nv = len(free)
    if softness is not None:
        B = np.concatenate([B, np.diag(weight * softness)], 1)
        free = np.concatenate([free, np.zeros(len(weight))])
    x, force = nearest(B, free, weight * gamma, rank)
    return forward(tree.above, tree.U, x[:nv] / root), weight * force


def nearest(B: Any, free: Any, gamma: Any, rank: Any) -> tuple[Any, Any]:
    """x (n,) nearest to `free` among those with the least |B x + γ|, and the smallest λ (m,) with x = free + Bᵀ λ."""
    m, n = B.shape
    if m <= n:  # rows of B made orthogonal, γ and what turns them going along
        turned = orthogonal(np.concatenate([B, gamma[:, None], np.eye(m)], 1), n)
        C, off, V = turned[:, :n], turned[:, n], turned[:, n + 1 :]
        inverse = _inverse(C, rank)
        y = -(C @ free + off) * inverse
        return free + C.T @ y, V.T @ y
    turned = orthogonal(np.concatenate([B.T, np.eye(n)], 1), m)
    C, V = turned[:, :m], turned[:, m:]
    inverse = _inverse(C, rank)
    y = -(C @ (B @ free + gamma)) * inverse
    return free + V.T @ y, C.T @ (y * inverse)


def _inverse(C: Any, rank: Any) -> Any:
    """1/s² of orthogonal vectors, zero where s² is none to speak of."""
    squares = np.sum(C * C, 1)
    kept = squares > rank * np.max(squares)
    return np.where(kept, 1.0 / np.where(kept, squares, 1.0), 0.0)
