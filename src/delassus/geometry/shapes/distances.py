"""Distances of points from simple sets, and their gradients."""

from __future__ import annotations

from typing import Any, Final

import delassus.numpy as np

TINY: Final = 1e-12
"""Distance [m] below which a vector has no direction."""


UPWARD: Final = 0.5
"""Smallest vertical component of the normal of a side that faces upward."""


def norm(x: Any) -> Any:
    """The Euclidean length of x (n,)."""
    return np.sqrt(np.sum(x * x))


def distance_from_ball(x: Any, center: Any, radius: Any, at_center: Any) -> tuple[Any, Any]:
    """The signed distance of a point from a ball, and the direction from its center; at the center, `at_center`."""
    offset = x - center
    distance = norm(offset)
    return distance - radius, np.where(distance > TINY, offset / np.maximum(distance, TINY), at_center)


def distance_from_sides(beyond: Any, directions: list[Any]) -> tuple[Any, Any]:
    """The distance and normal of a point that is `beyond` (n,) orthogonal sides; inside, those of the nearest side."""
    outside = np.maximum(beyond, 0.0)
    distance = norm(outside)
    rounded = sum(outside[k] / np.maximum(distance, TINY) * n for k, n in enumerate(directions))
    depth, face_normal = beyond[0], directions[0]
    for k in range(1, len(directions)):
        face_normal = np.where(beyond[k] > depth, directions[k], face_normal)
        depth = np.maximum(depth, beyond[k])
    is_outside = distance > TINY
    return np.where(is_outside, distance, depth), np.where(is_outside, rounded, face_normal)


def distance_from_below(beyond: Any, side: Any, up: Any, halves: Any, directions: list[Any]) -> tuple[Any, Any]:
    """The distance and normal of a point; for points inside, sides that face upward are omitted.

    Outside, it equals `distance_from_sides`.

    Args:
        beyond: (n,) the distance [m] of the point beyond the nearer of two opposite sides.
        side: (n,) which of these sides is nearer, -1 or 1.
        up: (n,) the vertical components of `directions`.
        halves: (n,) half the distances [m] of opposite sides.
        directions: For each pair of sides, the normal (3,) of side 1.
    """
    outward = [side[k] * direction for k, direction in enumerate(directions)]
    gap, normal = distance_from_sides(beyond, outward)
    is_reversed = side * up > UPWARD
    lower = np.where(is_reversed, -beyond - 2.0 * halves, beyond)
    depth, exit_normal = lower[0], np.where(is_reversed[0], -outward[0], outward[0])
    for k in range(1, len(directions)):
        exit_normal = np.where(lower[k] > depth, np.where(is_reversed[k], -outward[k], outward[k]), exit_normal)
        depth = np.maximum(lower[k], depth)
    inside = np.max(beyond) < 0.0
    return np.where(inside, depth, gap), np.where(inside, exit_normal, normal)
