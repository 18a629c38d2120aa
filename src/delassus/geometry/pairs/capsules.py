"""Contacts of two capsules: the nearest points of the axes, and the end spheres, which carry parallel capsules."""

from __future__ import annotations

from typing import Final

import delassus.numpy as np
from delassus.geometry.pairs.registry import pair
from delassus.geometry.pairs.spheres import ball_touch
from delassus.geometry.shapes.capsule import axis_ends
from delassus.geometry.shapes.distances import distance_from_ball, norm
from delassus.geometry.shapes.registry import SHAPES, Placed, Touch

_ALONG: Final = 1e-6
"""The sine of the angle between axes that count as parallel."""


@pair("capsule", "capsule", points=2, mutual=True)
def capsule_ends(one: Placed, other: Placed) -> list[Touch]:
    """Contacts of the balls at the ends of a capsule with another capsule."""
    return [ball_touch(SHAPES["capsule"], other, end, one.size[0]) for end in axis_ends(one)]


@pair("capsule", "capsule", points=1)
def nearest_on_axes(one: Placed, other: Placed) -> list[Touch]:
    """The contact at the nearest points of the axes of two capsules, p + s d for s from -1 to 1."""
    (R1, p1, (r1, l1)), (R2, p2, (r2, l2)) = one, other
    d1, d2, between = 0.5 * l1 * R1[:, 2], 0.5 * l2 * R2[:, 2], p1 - p2
    a, e, b, c, f = d1 @ d1, d2 @ d2, d1 @ d2, d1 @ between, d2 @ between
    cross = a * e - b * b
    parallel = cross <= 1e-9 * a * e
    s = np.where(parallel, 0.0, np.clip((b * f - c * e) / np.where(parallel, 1.0, cross), -1.0, 1.0))
    t = np.clip((b * s + f) / np.where(e > 0.0, e, 1.0), -1.0, 1.0)
    s = np.clip((b * t - c) / np.where(a > 0.0, a, 1.0), -1.0, 1.0)
    center, nearest = p1 + s * d1, p2 + t * d2
    # If the axes intersect, the normal is orthogonal to both.
    across = np.cross(R1[:, 2], R2[:, 2])
    size = norm(across)
    across = np.where(size > _ALONG, across / np.maximum(size, _ALONG), R2[:, 0])
    gap, normal = distance_from_ball(center, nearest, r2, across)
    return [Touch(gap - r1, center - r1 * normal, normal)]
