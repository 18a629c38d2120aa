"""Distances from points to simple sets, and the directions in which they grow."""

from __future__ import annotations

from typing import Any, Final

import delassus.numpy as np

TINY: Final = 1e-12
"""Distances [m] below have no direction."""


def norm(x: Any) -> Any:
    """The Euclidean length of x (n,)."""
    return np.sqrt(np.sum(x * x))


def distance_from_ball(x: Any, center: Any, radius: Any, at_center: Any) -> tuple[Any, Any]:
    """How far a point is outside of a ball, and the direction away from its centre; `at_center` if it is there."""
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
