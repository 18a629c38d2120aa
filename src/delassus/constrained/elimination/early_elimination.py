"""Elimination of one joint direction and one row in `pv_early`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import delassus.numpy as np
from delassus.dynamics.tree.articulated import is_plain
from delassus.linalg.products import mirror
from delassus.model.links import Link

_VANISHED: Final = 1e-8
"""sᵀs/D below this counts as zero, relative to the largest mobility of the rows. Eliminating a row loses 1e-16/share of
its accuracy; leaving it to the next joint loses the share itself.
"""
MOST: Final = 6
"""The maximum number of independent rows on a link."""


@dataclass(frozen=True)
class Reflection:
    """Householder reflection 1 - β w wᵀ, symmetric and its own inverse; the identity for β = 0."""

    w: Any
    beta: Any

    def __call__(self, x: Any) -> Any:
        """Apply to x (r,) or (r, k)."""
        component = self.beta * (self.w @ x)
        return x - self.w * component if np.ndim(x) == 1 else x - np.outer(self.w, component)


def _reflection(s: Any, pivot: int, square: Any, vanished: Any) -> Reflection:
    """The reflection that maps s (r,), with the given squared norm, to a multiple of unit vector `pivot`; identity if s
    vanished.
    """
    length = np.sqrt(np.where(vanished, 1.0, square))
    sign = np.where(s[pivot] < 0.0, -1.0, 1.0)
    w = np.array(s)
    w[pivot] = s[pivot] + sign * length
    return Reflection(w, np.where(vanished, 0.0, 1.0 / (length * (length + np.abs(s[pivot])))))


@dataclass(frozen=True)
class TravellingRows:
    """Rows K a + l = 0 on a link, scaled to a mobility of at most 1: K (r, 6), l (r,), and how often each was a pivot.

    An eliminated row leaves zeros in its place. Rows that were no pivots come first, which keeps these zeros.
    """

    K: Any
    l: Any
    used: tuple[int, ...]

    def __add__(self, other: TravellingRows) -> TravellingRows:
        K, l = np.concatenate([self.K, other.K]), np.concatenate([self.l, other.l])
        return TravellingRows(K, l, self.used + other.used)


@dataclass(frozen=True)
class RowElimination:
    """The row eliminated by a direction: s, its index, Q, K'_1 and l'_1, and 1/σ; or that s vanished."""

    s: Any
    pivot: int
    Q: Reflection
    K: Any
    l: Any
    inverse: Any
    vanished: Any


@dataclass(frozen=True)
class Direction:
    """A direction S of a joint, the velocity v: U = A S, 1/D, u, and the row that it eliminated, if any.

    `driven` are rows on this velocity itself, the last of its rows.
    """

    v: int
    S: Any
    U: Any
    inverse: Any
    u: Any
    taken: RowElimination | None
    driven: list[int]


def entering(K: Any, l: Any) -> TravellingRows:
    """Rows at the link where they enter."""
    return TravellingRows(np.array(K), l, (0,) * len(K))


def eliminate(
    link: Link, k: int, A: Any, p: Any, tau: Any, rows: TravellingRows | None, driven: list[tuple[int, Any]]
) -> tuple[Direction, Any, Any, TravellingRows | None]:
    """Eliminate direction k of a link's joint together with a row: the equations of `pv_early`.

    `driven` has the coefficients of this velocity in the last rows, by index.
    """
    S = np.concatenate(link.subspace)[:, k]
    U = A @ S
    inverse = 1.0 / (S @ U + link.armature[k])
    u = tau - S @ p
    axis = link.motion.directions[k]
    plain = is_plain(link)  # then the responses along S are exactly zero
    A = mirror(A - np.outer(U * inverse, U))
    if plain:
        A[axis, :] = A[:, axis] = 0.0
    p = p + U * (inverse * u)
    if rows is None:
        return Direction(link.v + k, S, U, inverse, u, None, []), A, p, None
    drive = np.array([0.0] * (len(rows.used) - len(driven)) + [factor for _, factor in driven])
    s = rows.K @ S + drive
    square = np.sum(s * s)
    vanished = ~(square * inverse > _VANISHED)
    pivot = min(range(len(rows.used)), key=rows.used.__getitem__)
    Q = _reflection(s, pivot, square, vanished)
    K, l = np.array(rows.K - np.outer(s * inverse, U)), rows.l + s * (inverse * u)
    if plain:
        K[:, axis] = -drive
    K, l = np.array(Q(K)), np.array(Q(l))
    row, bias = np.array(K[pivot]), l[pivot]
    sigma = np.where(vanished, 1.0, square * inverse)
    weight = np.where(vanished, 0.0, 1.0 / sigma)
    K[pivot], l[pivot] = np.where(vanished, row, 0.0), np.where(vanished, bias, 0.0)
    A = mirror(A + np.outer(row * weight, row))
    p = p + row * (weight * bias)
    elimination = RowElimination(s, pivot, Q, row, bias, weight, vanished)
    counts = tuple(n + (j == pivot) for j, n in enumerate(rows.used))
    direction = Direction(link.v + k, S, U, inverse, u, elimination, [row for row, _ in driven])
    return direction, A, p, TravellingRows(K, l, counts)


def fold(rows: TravellingRows) -> tuple[TravellingRows, list[Reflection]]:
    """Reduce many rows to six equivalent ones by a QR factorization of K; the others get K = 0 and no force."""
    K, l, folds = rows.K, rows.l, []
    for column in range(6):
        s = np.array(K[:, column])
        s[:column] = 0.0
        square = np.sum(s * s)
        Q = _reflection(s, column, square, square == 0.0)
        K, l = Q(K), Q(l)
        folds.append(Q)
    return TravellingRows(K[:MOST], l[:MOST], (0,) * MOST), folds
