"""Shapes that touch each other: balls against balls, capsules, boxes and cylinders, capsules against capsules, boxes
against boxes.

A ball touches with the point that is nearest to the other's surface; two capsules where their axes are nearest, and
with their ends, which carry what lies along; two boxes as `boxes` says. Others are refused: cover them with balls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.dynamics.tree.poses import Pair
from delassus.geometry.boxes import PLACES, box_touches
from delassus.geometry.candidates import Shape, Touch, placed_shape
from delassus.geometry.surfaces import Surface
from delassus.model.links import Links

_TINY: Final = 1e-12

_ALONG: Final = 1e-6
"""The sine of the angle between axes that count as parallel."""


@dataclass(frozen=True)
class Collision:
    """Places of a shape that may touch the surface of another one; `axes` for the axes of two capsules."""

    shape: Shape
    other: Shape
    axes: bool = False

    @property
    def count(self) -> int:
        """How many places."""
        if self.both_boxes:
            return PLACES
        return 1 if self.axes else self.shape.count

    @property
    def both_boxes(self) -> bool:
        """Whether two boxes touch."""
        return self.shape.geometry.shape == self.other.geometry.shape == "box"

    @property
    def name(self) -> str:
        """What touches what."""
        return f"{self.shape.geometry.name} on {self.other.geometry.name}"


def collisions_of(one: Shape, two: Shape) -> list[Collision]:
    """All ways in which two shapes may touch; none if some of them would not be found."""
    kinds = (one.geometry.shape, two.geometry.shape)
    if kinds == ("capsule", "capsule"):
        return [Collision(one, two), Collision(two, one), Collision(one, two, axes=True)]
    if kinds == ("box", "box"):
        return [Collision(one, two)]
    for ball, other in ((one, two), (two, one)):
        if ball.geometry.shape == "sphere" and other.geometry.shape in SURFACES:
            return [Collision(ball, other)]
    return []


def collision_touches(collision: Collision, tree: Links, world: list[Pair]) -> list[Touch]:
    """Where they touch, or would along the normal, which points from the other to the shape."""
    if collision.axes:
        return [_axes(collision, tree, world)]
    shape, other = collision.shape.geometry, collision.other.geometry
    if collision.both_boxes:
        poses = [placed_shape(one, tree, world) for one in (collision.shape, collision.other)]
        return box_touches(poses[0], shape.size, poses[1], other.size)
    surface = SURFACES[other.shape](*placed_shape(collision.other, tree, world), other.size)
    turn, middle = placed_shape(collision.shape, tree, world)
    radius, *length = shape.size
    found = []
    for along in (0.5 * length[0], -0.5 * length[0]) if length else (0.0,):  # ends of a capsule, centre of a ball
        center = middle + along * turn[:, 2]
        gap, normal = surface(center)
        found.append(Touch(gap - radius, center - radius * normal, normal))
    return found


# --- surfaces ---------------------------------------------------------------------------------------------------------


def _length(x: Any) -> Any:
    return np.sqrt(np.sum(x * x))


def _around(x: Any, center: Any, radius: float, at_center: Any) -> tuple[Any, Any]:
    """How far a point is outside of a ball, and the direction away from its centre; `at_center` if it is there."""
    away = x - center
    far = _length(away)
    return far - radius, np.where(far > _TINY, away / np.maximum(far, _TINY), at_center)


def _sphere(R: Any, p: Any, size: Any) -> Surface:
    return lambda x: _around(x, p, size[0], np.array((0.0, 0.0, 1.0)))


def _capsule(R: Any, p: Any, size: Any) -> Surface:
    radius, length = size

    def surface(x: Any) -> tuple[Any, Any]:
        nearest = p + R[:, 2] * np.clip(R[:, 2] @ (x - p), -0.5 * length, 0.5 * length)
        return _around(x, nearest, radius, R[:, 0])  # from the axis, the way out is across it

    return surface


def _corner(beyond: Any, directions: list[Any]) -> tuple[Any, Any]:
    """The distance and the normal where sides are passed by `beyond` (n,), or of the nearest side if none is."""
    outside = np.maximum(beyond, 0.0)
    far = _length(outside)
    rounded = sum(outside[k] / np.maximum(far, _TINY) * n for k, n in enumerate(directions))
    most, flat = beyond[0], directions[0]
    for k in range(1, len(directions)):
        flat = np.where(beyond[k] > most, directions[k], flat)
        most = np.maximum(most, beyond[k])
    out = far > _TINY
    return np.where(out, far, most), np.where(out, rounded, flat)


def _box(R: Any, p: Any, size: Any) -> Surface:
    def surface(x: Any) -> tuple[Any, Any]:
        local = R.T @ (x - p)
        side = np.where(local < 0.0, -1.0, 1.0)
        return _corner(np.abs(local) - 0.5 * numpy.array(size), [side[k] * R[:, k] for k in range(3)])

    return surface


def _cylinder(R: Any, p: Any, size: Any) -> Surface:
    radius, length = size

    def surface(x: Any) -> tuple[Any, Any]:
        away = x - p
        z = R[:, 2] @ away
        across = away - z * R[:, 2]
        r = _length(across)
        outward = np.where(r > _TINY, across / np.maximum(r, _TINY), R[:, 0])
        return _corner(
            np.stack([r - radius, np.abs(z) - 0.5 * length]), [outward, np.where(z < 0.0, -1.0, 1.0) * R[:, 2]]
        )

    return surface


SURFACES: Final[dict[str, Callable[[Any, Any, Any], Surface]]] = {
    "sphere": _sphere,
    "capsule": _capsule,
    "box": _box,
    "cylinder": _cylinder,
}
"""How far points are outside of a shape, by its kind, rotation, centre and size."""


# --- two capsules -----------------------------------------------------------------------------------------------------


def _axes(collision: Collision, tree: Links, world: list[Pair]) -> Touch:
    """Where the axes of two capsules, p + s d for s from -1 to 1, are nearest."""
    (R1, p1), (R2, p2) = placed_shape(collision.shape, tree, world), placed_shape(collision.other, tree, world)
    (r1, l1), (r2, l2) = collision.shape.geometry.size, collision.other.geometry.size
    d1, d2, between = 0.5 * l1 * R1[:, 2], 0.5 * l2 * R2[:, 2], p1 - p2
    a, e, b, c, f = d1 @ d1, d2 @ d2, d1 @ d2, d1 @ between, d2 @ between
    cross = a * e - b * b
    parallel = cross <= 1e-9 * a * e
    s = np.where(parallel, 0.0, np.clip((b * f - c * e) / np.where(parallel, 1.0, cross), -1.0, 1.0))
    t = np.clip((b * s + f) / (e if l2 > 0.0 else 1.0), -1.0, 1.0)
    s = np.clip((b * t - c) / (a if l1 > 0.0 else 1.0), -1.0, 1.0)
    center, other = p1 + s * d1, p2 + t * d2
    # Axes that meet are parted across both.
    across = np.cross(R1[:, 2], R2[:, 2])
    size = _length(across)
    across = np.where(size > _ALONG, across / np.maximum(size, _ALONG), R2[:, 0])
    gap, normal = _around(center, other, r2, across)
    return Touch(gap - r1, center - r1 * normal, normal)
