"""Gauss's principle by singular values, for any rank and to full precision, compiled.

With M⁻¹ = R Rᵀ (`roots`) and a = R x, the length of x - x_free is the one that Gauss' principle makes least, and

    M a = h + Jᵀ λ,   J a + γ + C λ = 0     become     x = x_free + Bᵀ λ̂,   B x + γ̂ = 0,
    x_free = Rᵀ h,   B = E^-½ [J R, C^½],   λ̂ = E^½ λ,   γ̂ = E^-½ γ,

E the weights of the rows (compliance is motion of its own, along which x begins at 0). B is orthogonal vectors times an
orthogonal matrix (`jacobi`). Each of its singular values s is either kept, which takes off all that B x + γ̂ has along
it, or so small that it counts as zero, which leaves it: so x is the answer of least squares, and λ̂ the smallest. The
digits that J M⁻¹ Jᵀ would square away are there: s² is compared, s computed.

What γ̂ has along directions in which B moves nothing but by rounding is a contradiction, which no acceleration takes
off. Between these and the ones that are kept are directions in which rows could be met by moving very fast: what is
left there is not a contradiction.

O(m n min(m, n)) operations a sweep of the singular values, some 50 times those of a proximal solve. Choose it where
these do not settle: near singular poses.
"""

from __future__ import annotations

from typing import Any, Final

import delassus.numpy as np
from delassus.compiler.tracing.trace import computing_in
from delassus.constrained.elimination.roots import Root
from delassus.linalg.least_squares import RANK, nearest_solution

_STILL: Final = {"float64": 1e-20, "float32": RANK}
"""Squares of singular values below this share of the largest are zero but for rounding, and a reserve."""


def by_singular_values(
    root: Root, h: Any, gamma: Any, epsilon: Any, softness: Any = None, rank: Any = None
) -> tuple[Any, Any, Any]:
    """Accelerations (nv,), forces (m,) and what is contradictory in γ (m,), from h = tau - c (nv,) and γ (m,).

    `softness` (m,) is the root of the compliance, if there is any. With a `rank`, all that does not reach it is zero.
    """
    weight = 1.0 / np.sqrt(epsilon)
    B = root.rows * weight[:, None]
    free = root.of_forces(h)
    nv = len(free)
    if softness is not None:
        B = np.concatenate([B, np.diag(weight * softness)], 1)
        free = np.concatenate([free, np.zeros(len(weight))])
    still = _STILL[computing_in().name] if rank is None else rank
    x, force, contradiction = nearest_solution(B, free, weight * gamma, RANK if rank is None else rank, still)
    return root.to_accelerations(x[:nv]), weight * force, contradiction / weight
