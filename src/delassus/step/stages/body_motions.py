"""Contacts of one body as functions of its six velocities.

The four corners of a foot have twelve rows, which are P times the six velocities of the foot. The Delassus matrix is P
S Pᵀ, where S = V M̂⁻¹ Vᵀ is the response of the motions V. S has half as many rows, and is regular although G is
singular.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import numpy

import delassus.numpy as np
from delassus.spatial.rotations import skew

SIX: Final = 6
"""Motions of a body: translations along the axes of its contacts, and rotations about the third, first and second
axis."""

_TURNS: Final = [2, 0, 1]


Bodies: TypeAlias = tuple[tuple[slice, tuple[int, ...]], ...]
"""For each body, its motions and the indices of its contacts."""


class BodyMotions(NamedTuple):
    """The map P (rows, motions) from body motions to contact rows, and the motions and contacts of each body."""

    P: Any
    bodies: Bodies

    def with_others(self, count: int) -> BodyMotions:
        """Append `count` rows, each of which is a motion."""
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
    """The Jacobian J of the body motions, as a list of blocks (·, nv), and the map from motions to rows.

    The map is None if sharing motions saves nothing; then each row is a motion.

    Args:
        bodies: The two bodies of each contact.
        points: (contacts, 3) contact points in the world [m].
        axes: Axes (3, 3) of each contact, the normal last.
        flat: (3, 3) the axes of all contacts, or None if they differ.
        count: Rows of a contact.
        rows: The Jacobian (count, nv) of a contact's body at a point (3,) along axes.
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
    """The rows (count, 6) of a contact at r (3,) from the reference point of the motions: v + ω × r, and ω, along the
    rotated axes."""
    moves = np.concatenate([np.eye(3), -skew(arm)[:, _TURNS]], 1)
    turns = np.concatenate([np.zeros((3, 3)), np.eye(3)[:, _TURNS]], 1)
    return np.concatenate([turned @ moves, (turned @ turns)[_TURNS[: count - 3]]]) if count > 3 else turned @ moves
