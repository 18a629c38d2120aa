"""Gauss's principle by singular values, for any rank and to full precision, compiled.

With M⁻¹ = R Rᵀ (`roots`) and a = R x, the norm of x - x_free is what Gauss's principle minimizes, and

    M a = h + Jᵀ λ,   J a + γ + C λ = 0     become     x = x_free + Bᵀ λ̂,   B x + γ̂ = 0,
    x_free = Rᵀ h,   B = E^-½ [J R, C^½],   λ̂ = E^½ λ,   γ̂ = E^-½ γ,

E are the weights of the rows (compliance is a motion of its own, along which x starts at 0). B is factored as
orthogonal vectors times an orthogonal matrix (`jacobi`). A singular value s is either kept, which removes the component
of B x + γ̂ along its vector, or treated as zero, which leaves it. So x is the least-squares solution, and λ̂ the
smallest one. Forming J M⁻¹ Jᵀ would halve the number of accurate digits; here s is computed, and only compared as s².

The component of γ̂ along directions in which B is zero up to rounding is an infeasible part, which no acceleration can
remove. Between these directions and those that are kept, rows could be met only by very fast motions; the residual left
there does not count as infeasible.

O(m n min(m, n)) operations for each Jacobi sweep, about 50 times those of a proximal solve. Choose it where proximal
iterations do not converge: near singular poses.
"""

from __future__ import annotations

from typing import Any, Final

import delassus.numpy as np
from delassus.compiler.tracing.trace import computing_in
from delassus.constrained.elimination.roots import Root
from delassus.linalg.least_squares import RANK, nearest_solution

_STILL: Final = {"float64": 1e-20, "float32": RANK}
"""Squared singular values below this fraction of the largest are rounding errors; includes a margin."""


def by_singular_values(
    root: Root, h: Any, gamma: Any, epsilon: Any, softness: Any = None, rank: Any = None
) -> tuple[Any, Any, Any]:
    """Accelerations (nv,), forces (m,) and the infeasible part of γ (m,), from h = tau - c (nv,) and γ (m,).

    `softness` (m,) is the square root of the compliance, if any. With a `rank`, singular values below it count as zero.
    """
    weight = 1.0 / np.sqrt(epsilon)
    B = root.rows * weight[:, None]
    free = root.of_forces(h)
    nv = len(free)
    if softness is not None:
        B = np.concatenate([B, np.diag(weight * softness)], 1)
        free = np.concatenate([free, np.zeros(len(weight))])
    zero_level = _STILL[computing_in().name] if rank is None else rank
    x, force, contradiction = nearest_solution(B, free, weight * gamma, RANK if rank is None else rank, zero_level)
    return root.to_accelerations(x[:nv]), weight * force, contradiction / weight
