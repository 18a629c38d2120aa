"""Contacts of one body share its six motions, however many they are.

Four corners of a foot have twelve rows, and move as the foot does: their rows are P times its six. So the Delassus
matrix is P S Pᵀ, S = V M̂⁻¹ Vᵀ that of the motions V, which has half as many rows, and is as regular as G is singular.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import numpy

import delassus.numpy as np
from delassus.spatial.rotations import skew

SIX: Final = 6
"""The motions of a body: along the axes of its contacts, and about the third, the first and the second."""

_TURNS: Final = [2, 0, 1]


Bodies: TypeAlias = tuple[tuple[slice, tuple[int, ...]], ...]
"""Of each body its motions, and its contacts by their numbers."""


class BodyMotions(NamedTuple):
    """P (rows, motions), and of each body its motions and its contacts."""

    P: Any
    bodies: Bodies

    def with_others(self, count: int) -> BodyMotions:
        """The sharing with `count` more rows, which are motions themselves."""
        rows, motions = self.P.shape
        P = np.concatenate([self.P, np.zeros((count, motions))])
        return self._replace(P=np.concatenate([P, np.eye(rows + count, count, -rows)], 1))


def shared_motions(
    bodies: list[tuple[int, int]],
    points: Any,
    axes: list[Any],
    flat: Any,
    count: int,
    rows: Callable[[int, Any, Any, int], Any],
) -> tuple[list[Any], BodyMotions | None]:
    """J of the motions, in parts (some, nv), and what rows have of them; None if they are the same.

    Args:
        bodies: Of each contact what touches and what is touched.
        points: (contacts, 3) [m].
        axes: Of each contact (3, 3), the normal last.
        flat: Those of all contacts, or None if they differ.
        count: Rows of a contact.
        rows: The Jacobian (count, nv) of a contact's body at a point (3,), along some axes, with so many rows.
    """
    members = {body: [k for k, own in enumerate(bodies) if own == body] for body in dict.fromkeys(bodies)}
    J: list[Any] = []
    blocks: dict[int, tuple[int, Any]] = {}
    found: list[tuple[slice, tuple[int, ...]]] = []
    start = 0
    for some in members.values():
        if count * len(some) <= SIX:
            for k in some:
                J.append(rows(k, points[k], axes[k], count))
                blocks[k] = (start, numpy.eye(count))
                found.append((slice(start, start + count), (k,)))
                start += count
            continue
        middle = sum(points[k] for k in some[1:]) / len(some) + points[some[0]] / len(some)
        along = np.eye(3) if flat is None else flat
        J.append(rows(some[0], middle, along, SIX))
        for k in some:
            turned = np.eye(3) if flat is not None else axes[k].T
            blocks[k] = (start, _at(along.T @ (points[k] - middle), turned, count))
        found.append((slice(start, start + SIX), tuple(some)))
        start += SIX
    if start == count * len(bodies):
        return J, None
    P = np.zeros((count * len(bodies), start))
    for k, (first, block) in blocks.items():
        P[count * k : count * (k + 1), first : first + block.shape[1]] = block
    return J, BodyMotions(P, tuple(found))


def _at(arm: Any, turned: Any, count: int) -> Any:
    """The rows (count, 6) of a contact at an arm (3,) from where the motions are taken, along axes turned from theirs:
    v + ω × r, and ω."""
    moves = np.concatenate([np.eye(3), -skew(arm)[:, _TURNS]], 1)
    turns = np.concatenate([np.zeros((3, 3)), np.eye(3)[:, _TURNS]], 1)
    return np.concatenate([turned @ moves, (turned @ turns)[_TURNS[: count - 3]]]) if count > 3 else turned @ moves
