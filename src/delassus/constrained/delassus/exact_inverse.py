"""The exact inverse of [-C, J; Jᵀ, M], or its pseudo-inverse where rows depend on each other, by singular values.

With M = U D Uᵀ, R = D^-½ U⁻¹ (so that M⁻¹ = Rᵀ R) and the whitened rows B = E^-½ [J Rᵀ, C^½], as in `gauss`,

    Λ = E^-½ (B Bᵀ)⁺ E^-½,      Λ J M⁻¹ = E^-½ (B Bᵀ)⁺ B R,      N = M⁻¹ - Rᵀ B⁺ B R,

R on the columns of B that belong to joints. The singular values are those of B, not of J M⁻¹ Jᵀ, which would have half
of their digits. Where J has full row rank nothing depends on E; elsewhere E is the norm by which forces are the
smallest and residuals the least, and E = I gives the pseudo-inverse of Moore and Penrose.

O(m n min(m, n)) operations a sweep of the singular values (see `jacobi`), and O(n² m).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.constrained.elimination.gauss import RANK
from delassus.constrained.elimination.jacobi import orthogonal
from delassus.constrained.elimination.tree_factor import TreeFactor
from delassus.dynamics.mass.factor import forward
from delassus.dynamics.tree.poses import mirrored


class Decomposition(NamedTuple):
    """Of a matrix B (m, n) with k = min(m, n): (B Bᵀ)⁺ = X diag(gram) Xᵀ, (B Bᵀ)⁺ B = X diag(mixed) Z and
    B⁺ B = Zᵀ diag(projector) Z.
    """

    X: Any
    """(m, k)."""
    Z: Any
    """(k, n)."""
    gram: Any
    mixed: Any
    projector: Any


def exact_blocks(tree: TreeFactor, M_inverse: Any, epsilon: Any, compliance: Any) -> tuple[Any, Any, Any]:
    """-Λ (m, m), Λ J M⁻¹ (m, nv) and N (nv, nv), for weights ε (m,) and the compliance (m,) of the rows."""
    n, m = len(tree.D), len(tree.Y)
    if not m:
        return np.zeros((0, 0)), np.zeros((0, n)), M_inverse
    weight, root = 1.0 / np.sqrt(epsilon), np.sqrt(tree.D)
    B = tree.Y * root * weight[:, None]
    if any(compliance):
        B = np.concatenate([B, np.diag(weight * np.sqrt(compliance))], 1)
    X, Z, gram, mixed, projector = decompose(B)
    X = weight[:, None] * X
    Z = np.stack([forward(tree.above, tree.U, z[:n] / root) for z in Z])  # Z R
    free = M_inverse - Z.T @ (projector[:, None] * Z)
    return -mirrored((X * gram) @ X.T), (X * mixed) @ Z, mirrored(free)


def decompose(B: Any) -> Decomposition:
    """By singular values; squares of them below `RANK` of the largest count as zero."""
    m, n = B.shape
    if m <= n:  # V B = C, the rows of C orthogonal
        turned = orthogonal(np.concatenate([B, np.eye(m)], 1), n)
        C, V = turned[:, :n], turned[:, n:]
        inverse = _inverse_squares(C)
        return Decomposition(V.T, C, inverse, inverse, inverse)
    turned = orthogonal(np.concatenate([B.T, np.eye(n)], 1), m)  # V Bᵀ = C
    C, V = turned[:, :m], turned[:, m:]
    inverse = _inverse_squares(C)
    return Decomposition(C.T, V, inverse * inverse, inverse, np.where(inverse > 0.0, 1.0, inverse))


def _inverse_squares(C: Any) -> Any:
    """1/s² of orthogonal vectors (k, l), zero where s² is none to speak of; NaN where a vector is none."""
    squares = np.sum(C * C, 1)
    kept = squares > RANK * np.max(squares)
    inverse = np.where(kept, 1.0 / np.where(kept, squares, 1.0), 0.0)
    return np.where(np.isnan(squares), np.nan, inverse)
