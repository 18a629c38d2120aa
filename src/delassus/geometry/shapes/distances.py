"""Distances of points from simple sets, and their gradients."""

from __future__ import annotations

from typing import Any, Final

import delassus.numpy as np

TINY: Final = 1e-12
"""Distances [m] below have no direction."""


UPWARD: Final = 0.5
"""The vertical part of the normals of sides that look upwards, at least."""


def norm(x: Any) -> Any:
    """The Euclidean length of x (n,)."""
    return np.sqrt(np.sum(x * x))


def distance_from_ball(x: Any, center: Any, radius: Any, at_center: Any) -> tuple[Any, Any]:
    """How far a point is outside of a ball, and the direction away from its center; `at_center` if it is there."""
    away = x - center
    far = norm(away)
    return far - radius, np.where(far > TINY, away / np.maximum(far, TINY), at_center)


def distance_from_sides(beyond: Any, directions: list[Any]) -> tuple[Any, Any]:
    """The distance and the normal where orthogonal sides are passed by `beyond` (n,), or of the nearest side inside."""
    outside = np.maximum(beyond, 0.0)
    far = norm(outside)
    rounded = sum(outside[k] / np.maximum(far, TINY) * n for k, n in enumerate(directions))
    most, flat = beyond[0], directions[0]
    for k in range(1, len(directions)):
        flat = np.where(beyond[k] > most, directions[k], flat)
        most = np.maximum(most, beyond[k])
    out = far > TINY
    return np.where(out, far, most), np.where(out, rounded, flat)


def distance_from_below(beyond: Any, side: Any, up: Any, halves: Any, directions: list[Any]) -> tuple[Any, Any]:
    """`distance_from_sides` for a point that is not pushed out through sides that look upwards.

    Args:
        beyond: (n,) how far [m] the point is beyond the nearer of two opposite sides.
        side: (n,) on which of them, -1 or 1.
        up: (n,) the vertical parts of `directions`.
        halves: (n,) half the distances [m] of opposite sides.
        directions: Of each pair of sides, the normal (3,) of the one with side 1.
    """
    outward = [side[k] * direction for k, direction in enumerate(directions)]
    gap, normal = distance_from_sides(beyond, outward)
    turned = side * up > UPWARD
    lower = np.where(turned, -beyond - 2.0 * halves, beyond)
    depth, way = lower[0], np.where(turned[0], -outward[0], outward[0])
    for k in range(1, len(directions)):
        way = np.where(lower[k] > depth, np.where(turned[k], -outward[k], outward[k]), way)
        depth = np.maximum(lower[k], depth)
    inside = np.max(beyond) < 0.0
    return np.where(inside, depth, gap), np.where(inside, way, normal)
