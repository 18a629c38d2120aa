"""Gauss' principle by singular values: the answer whatever the rank, to the last digits, compiled.

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

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.trace import computing_in
from delassus.constrained.elimination.jacobi import orthogonal
from delassus.constrained.elimination.roots import Root

RANK: Final = 1e-12
"""Squares of singular values below this share of the largest count as zero, and so do eigenvalues of J M⁻¹ Jᵀ."""

_STILL: Final = {"float64": 1e-20, "float32": RANK}
"""Squares of singular values below this share of the largest are zero but for rounding, and a reserve."""


class Nearest(NamedTuple):
    """x (n,), λ (m,), and the part of γ (m,) that no x takes off."""

    x: Any
    force: Any
    contradiction: Any


def by_singular_values(
    root: Root,
    h: Any,
    gamma: Any,
    epsilon: Any,
    softness: Any = None,
    rank: Any = None,
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
    x, force, contradiction = nearest(B, free, weight * gamma, RANK if rank is None else rank, still)
    return root.to_accelerations(x[:nv]), weight * force, contradiction / weight


def nearest(B: Any, free: Any, gamma: Any, rank: Any, still: Any = 0.0) -> Nearest:
    """x (n,) nearest to `free` among those with the least |B x + γ|, and the smallest λ (m,) with x = free + Bᵀ λ.

    Directions with s² below the share `still` of the largest do not move at all: γ along these is contradictory.
    """
    m, n = B.shape
    if m <= n:  # rows of B made orthogonal, γ and what turns them going along
        turned = orthogonal(np.concatenate([B, gamma[:, None], np.eye(m)], 1), n)
        C, off, V = turned[:, :n], turned[:, n], turned[:, n + 1 :]
        squares = np.sum(C * C, 1)
        y = -(C @ free + off) * _inverse(squares, rank)
        return Nearest(free + C.T @ y, V.T @ y, V.T @ np.where(_counts(squares, still), 0.0, off))
    turned = orthogonal(np.concatenate([B.T, np.eye(n)], 1), m)
    C, V = turned[:, :m], turned[:, m:]
    squares = np.sum(C * C, 1)
    inverse = _inverse(squares, rank)
    y = -(C @ (B @ free + gamma)) * inverse
    return Nearest(free + V.T @ y, C.T @ (y * inverse), gamma - C.T @ (C @ gamma * _inverse(squares, still)))


def _counts(squares: Any, share: Any) -> Any:
    """Whether s² is more than a share of the largest."""
    return squares > share * np.max(squares)


def _inverse(squares: Any, share: Any) -> Any:
    """1/s², zero where s² is none to speak of."""
    kept = _counts(squares, share)
    return np.where(kept, 1.0 / np.where(kept, squares, 1.0), 0.0)
