"""Cylinders around z: size (radius, length)."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.geometry.fields import HeightField
from delassus.geometry.shapes.distances import TINY, distance_from_below, distance_from_sides, norm
from delassus.geometry.shapes.ground import point_touch
from delassus.geometry.shapes.registry import Array, Core, Facet, Placed, ShapeKind, Touch, register_shape
from delassus.geometry.shapes.rims import RIM_POINTS, rim_touches
from delassus.geometry.shapes.terrain import TERRAIN_POINTS, ConvexBody, convex_touches
from delassus.geometry.surfaces import Surface

_THIRD: Final = 2.0 * math.pi / 3.0

_EIGHTH: Final = 0.25 * math.pi


@register_shape("cylinder")
class Cylinder(ShapeKind):
    """A cylinder; it touches the ground with the lowest point and two other points of each rim."""

    has_distance = True
    lengths = 2

    def ground_points(self, size: Any, on_field: bool) -> int:
        """The lowest point and two others of each rim; on a height field, the lowest points above two faces and three
        others of each rim, plus the contacts with vertices and edges."""
        return 2 * (RIM_POINTS + 3) + TERRAIN_POINTS if on_field else 6

    def rolling(self, size: Any, on_field: bool) -> tuple[bool, ...]:
        """The lowest points of the rims move on the body when it rotates."""
        if on_field:
            return (*(True,) * RIM_POINTS, *(False,) * 3) * 2 + (False,) * TERRAIN_POINTS
        return (True, False, False) * 2

    def ground_touches(self, body: Placed, surface: Surface, on_field: bool) -> list[Touch]:
        """The contacts of the upper and the lower rim.

        On a plane, the other points are a third of a turn on both sides of the lowest one. On a height field, they are
        fixed to the body, since points relative to the lowest one would jump from one side of a ridge to the other.
        """
        (radius, length), touches, turn = body.size, [], body.R
        for z in (0.5 * length, -0.5 * length):
            center = body.at(np.array((0.0, 0.0, z)))

            def on_rim(c: Any, s: Any, center: Any = center) -> Any:
                return center + radius * (turn[:, 0] * c + turn[:, 1] * s)

            c, s = _lowest_direction(turn, surface(center)[1])
            if on_field:
                if isinstance(surface, HeightField):
                    touches += rim_touches(surface, center, turn[:, 2], radius)
                else:
                    lowest = point_touch(surface, on_rim(c, s))
                    touches += [lowest, *[lowest._replace(gap=np.abs(lowest.gap) + 10.0 * radius)] * (RIM_POINTS - 1)]
                touches += [point_touch(surface, on_rim(math.cos(k * _THIRD), math.sin(k * _THIRD))) for k in range(3)]
                continue
            for angle in (0.0, _THIRD, -_THIRD):
                a, b = math.cos(angle), math.sin(angle)
                touches.append(point_touch(surface, on_rim(c * a - s * b, s * a + c * b)))
        if not on_field:
            return touches
        across = np.sqrt(np.maximum(1.0 - turn[2, 2] * turn[2, 2], 0.0))
        lowest = body.p[2] - 0.5 * length * np.abs(turn[2, 2]) - radius * across
        terrain = ConvexBody(lambda x: _distance_of_terrain(body, x), body.p, math.hypot(radius, 0.5 * length), lowest)
        return touches + convex_touches(surface, terrain)

    def distance(self, body: Placed, x: Any) -> tuple[Any, Any]:
        """The distance from the mantle, a lid or a rim; inside, from the nearer of mantle and lid."""
        beyond, outward, side = _sides(body, x)
        return distance_from_sides(beyond, [outward, side * body.R[:, 2]])

    def support(self, body: Placed, direction: Any) -> Any:
        """The support point, on a rim."""
        radius, length = body.size
        local = body.R.T @ direction
        across = np.sqrt(local[0] * local[0] + local[1] * local[1])
        scale = radius / np.maximum(across, TINY)
        return body.at(np.stack([scale * local[0], scale * local[1], np.where(local[2] < 0.0, -0.5, 0.5) * length]))

    def core(self, body: Placed) -> Core:
        """The core is the whole cylinder."""
        radius, length = body.size
        half = 0.5 * length
        extents = np.stack([np.array(radius), np.array(radius), np.array(half)])
        return Core(body.p, extents, 0.0, np.minimum(radius, half))

    def facet(self, body: Placed, direction: Any) -> Facet:
        """A lid, as an octagon on its rim, or the line of the mantle in the direction."""
        radius, length = body.size
        local = body.R.T @ direction
        across = np.sqrt(local[0] * local[0] + local[1] * local[1])
        lid = np.abs(local[2]) > across
        side = np.where(local[2] < 0.0, -1.0, 1.0)
        upper = np.where(lid, side, 1.0)
        scale = radius / np.where(lid, 1.0, across)
        corners = []
        for k in range(8):
            x, y = radius * math.cos(k * _EIGHTH), radius * math.sin(k * _EIGHTH)
            z = 0.5 * length * np.where(lid, upper, 1.0 if k in (0, 7) else -1.0)
            corner = [np.where(lid, x, scale * local[0]), np.where(lid, y, scale * local[1]), z]
            corners.append(body.at(np.stack(corner)))
        normal = np.where(lid, side * body.R[:, 2], direction)
        axis = np.where(lid, body.R[:, 0], body.R[:, 2])
        return Facet(np.stack(corners), normal, axis, np.where(lid, np.where(side > 0.0, 1.0, 2.0), 0.0))

    def outline(self, size: Any) -> Array:
        """The points that are drawn: both rims."""
        (radius, length), turn = size, numpy.linspace(0.0, 2.0 * math.pi, 32, endpoint=False)
        ring = numpy.stack([radius * numpy.cos(turn), radius * numpy.sin(turn), numpy.zeros(32)], -1)
        return numpy.concatenate([ring + numpy.array((0.0, 0.0, z)) for z in (-0.5 * length, 0.5 * length)])


def _sides(body: Placed, x: Any) -> tuple[Any, Any, Any]:
    """The distances (2,) of a point beyond the mantle and beyond the nearer lid, the direction away from the axis, and
    the side of that lid, -1 or 1."""
    radius, length = body.size
    away = x - body.p
    z = body.R[:, 2] @ away
    across = away - z * body.R[:, 2]
    r = norm(across)
    outward = np.where(r > TINY, across / np.maximum(r, TINY), body.R[:, 0])
    return np.stack([r - radius, np.abs(z) - 0.5 * length]), outward, np.where(z < 0.0, -1.0, 1.0)


def _distance_of_terrain(body: Placed, x: Any) -> tuple[Any, Any]:
    """The distance of a point of the terrain from a cylinder; inside, a lid that faces upward is omitted."""
    beyond, outward, side = _sides(body, x)
    up = np.stack([np.array(0.0), body.R[2, 2]])
    halves = np.stack([np.array(body.size[0]), np.array(0.5 * body.size[1])])
    return distance_from_below(beyond, np.stack([np.array(1.0), side]), up, halves, [outward, body.R[:, 2]])


def _lowest_direction(turn: Any, normal: Any) -> tuple[Any, Any]:
    """The cosine and sine of the angle, on a rim around the z axis of `turn`, of the lowest point above a plane."""
    x, y = -(turn[:, 0] @ normal), -(turn[:, 1] @ normal)
    size = np.sqrt(x * x + y * y)
    upright = size < 1e-9  # all points are equally low
    safe = np.where(upright, 1.0, size)
    return np.where(upright, 1.0, x) / safe, np.where(upright, 0.0, y) / safe
