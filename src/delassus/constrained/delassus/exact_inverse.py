"""The exact inverse of [-C, J; Jᵀ, M], or its pseudo-inverse for dependent rows, by singular values.

With M = U D Uᵀ, R = D^-½ U⁻¹ (so that M⁻¹ = Rᵀ R) and the whitened rows B = E^-½ [J Rᵀ, C^½], as in `gauss`,

    Λ = E^-½ (B Bᵀ)⁺ E^-½,      Λ J M⁻¹ = E^-½ (B Bᵀ)⁺ B R,      N = M⁻¹ - Rᵀ B⁺ B R,

R on the columns of B that belong to joints. The singular values are computed from B instead of J M⁻¹ Jᵀ, which would
halve the number of accurate digits. If J has full row rank, the result is independent of E; otherwise E defines the
norm in which forces and residuals are smallest, and E = I gives the Moore–Penrose pseudo-inverse.

O(m n min(m, n)) operations for each Jacobi sweep of the singular values (see `jacobi`), and O(n² m).
"""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.constrained.elimination.tree_factor import TreeFactor
from delassus.dynamics.mass.factor import forward
from delassus.linalg.least_squares import decompose
from delassus.linalg.products import mirror


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
    return -mirror((X * gram) @ X.T), (X * mixed) @ Z, mirror(free)
