"""Elimination of one joint direction and one row in `pv_early`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import delassus.numpy as np
from delassus.dynamics.tree.articulated import is_plain
from delassus.linalg.products import mirror
from delassus.model.links import Link

_VANISHED: Final = 1e-8
"""sᵀs/D below this counts as zero: what a direction lets its rows yield, as a share of what they yield at most. Taking
a row away costs 1e-16/share of its digits, leaving it to the next joint costs the share itself."""
MOST: Final = 6
"""The rows on a link that can be independent."""


@dataclass(frozen=True)
class Reflection:
    """1 - β w wᵀ, symmetric and its own inverse; it does nothing where β is zero."""

    w: Any
    beta: Any

    def __call__(self, x: Any) -> Any:
        """Of x (r,) or (r, k)."""
        along = self.beta * (self.w @ x)
        return x - self.w * along if np.ndim(x) == 1 else x - np.outer(self.w, along)


def _reflection(s: Any, pivot: int, square: Any, vanished: Any) -> Reflection:
    """What turns s (r,), of the squared length given, into one number in the place `pivot`; nothing if it vanished."""
    length = np.sqrt(np.where(vanished, 1.0, square))
    sign = np.where(s[pivot] < 0.0, -1.0, 1.0)
    w = np.array(s)
    w[pivot] = s[pivot] + sign * length
    return Reflection(w, np.where(vanished, 0.0, 1.0 / (length * (length + np.abs(s[pivot])))))


@dataclass(frozen=True)
class TravellingRows:
    """Rows K a + l = 0 on a link, weighted so that they yield 1 at most: K (r, 6), l (r,), how often each was a pivot.

    A row that was taken away leaves zeros in its place. Places that were no pivot come first, which keeps the zeros.
    """

    K: Any
    l: Any
    used: tuple[int, ...]

    def __add__(self, other: TravellingRows) -> TravellingRows:
        K, l = np.concatenate([self.K, other.K]), np.concatenate([self.l, other.l])
        return TravellingRows(K, l, self.used + other.used)


@dataclass(frozen=True)
class RowElimination:
    """The row that a direction took away: s, its place, Q, K'_1 and l'_1, and 1/σ; or whether s has vanished."""

    s: Any
    pivot: int
    Q: Reflection
    K: Any
    l: Any
    inverse: Any
    vanished: Any


@dataclass(frozen=True)
class Direction:
    """A direction S of a joint, the velocity v: U = A S, 1/D, u, the row that it took away if it met any.

    `driven` are the rows on this velocity itself, the last ones that it met.
    """

    v: int
    S: Any
    U: Any
    inverse: Any
    u: Any
    taken: RowElimination | None
    driven: list[int]


def entering(K: Any, l: Any) -> TravellingRows:
    """Rows where they enter."""
    return TravellingRows(np.array(K), l, (0,) * len(K))


def eliminate(
    link: Link, k: int, A: Any, p: Any, tau: Any, rows: TravellingRows | None, driven: list[tuple[int, Any]]
) -> tuple[Direction, Any, Any, TravellingRows | None]:
    """Direction k of a link's joint, and a row with it: the equations of `pv_early`.

    `driven` tells what the last rows, by number, take of this velocity itself.
    """
    S = np.concatenate(link.subspace)[:, k]
    U = A @ S
    inverse = 1.0 / (S @ U + link.armature[k])
    u = tau - S @ p
    axis = link.motion.directions[k]
    plain = is_plain(link)  # then nothing is felt along S, exactly
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
    row, own = np.array(K[pivot]), l[pivot]
    sigma = np.where(vanished, 1.0, square * inverse)
    weight = np.where(vanished, 0.0, 1.0 / sigma)
    K[pivot], l[pivot] = np.where(vanished, row, 0.0), np.where(vanished, own, 0.0)
    A = mirror(A + np.outer(row * weight, row))
    p = p + row * (weight * own)
    taken = RowElimination(s, pivot, Q, row, own, weight, vanished)
    used = tuple(n + (j == pivot) for j, n in enumerate(rows.used))
    direction = Direction(link.v + k, S, U, inverse, u, taken, [row for row, _ in driven])
    return direction, A, p, TravellingRows(K, l, used)


def fold(rows: TravellingRows) -> tuple[TravellingRows, list[Reflection]]:
    """Reduce many rows to six equivalent ones by a QR factorization of K; the others have K = 0 and no force."""
    K, l, folds = rows.K, rows.l, []
    for column in range(6):
        s = np.array(K[:, column])
        s[:column] = 0.0
        square = np.sum(s * s)
        Q = _reflection(s, column, square, square == 0.0)
        K, l = Q(K), Q(l)
        folds.append(Q)
    return TravellingRows(K[:MOST], l[:MOST], (0,) * MOST), folds
