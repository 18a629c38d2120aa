"""Cylinders around z: size (radius, length)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.geometry.fields import HeightField
from delassus.geometry.shapes.distances import TINY, distance_from_sides, norm
from delassus.geometry.shapes.ground import point_touch
from delassus.geometry.shapes.registry import Array, Core, Facet, Placed, ShapeKind, Touch, register_shape
from delassus.geometry.surfaces import Surface

_THIRD: Final = 2.0 * math.pi / 3.0

_EIGHTH: Final = 0.25 * math.pi

_SAME_FACE: Final = 1.0 - 1e-12
"""The cosine of the angle between normals that are those of one face of a height field."""

_DEEP: Final = 0.02
"""Of a cylinder's radius: a rim that is deeper in a height field has not come there by its lowest point."""


@register_shape("cylinder")
class Cylinder(ShapeKind):
    """A cylinder touches with the lowest point of each rim, and with others, on which it stands upright."""

    has_distance = True
    lengths = 2

    def ground_points(self, size: Any, on_field: bool) -> int:
        """On each rim, the lowest one and two others; three on a height field."""
        return 8 if on_field else 6

    def rolling(self, size: Any, on_field: bool) -> tuple[bool, ...]:
        """The lowest ones."""
        return (True, *(False,) * (self.ground_points(size, on_field) // 2 - 1)) * 2

    def ground_touches(self, body: Placed, surface: Surface, on_field: bool) -> list[Touch]:
        """Of the upper and the lower rim.

        On a plane, the other points are a third of a turn to both sides of the lowest one. On a height field, they are
        fixed to the body, since others would jump from one side of a ridge to the other.
        """
        (radius, length), touches, turn = body.size, [], body.R
        for z in (0.5 * length, -0.5 * length):
            center = body.at(np.array((0.0, 0.0, z)))

            def on_rim(c: Any, s: Any, center: Any = center) -> Any:
                return center + radius * (turn[:, 0] * c + turn[:, 1] * s)

            c, s = _lowest_direction(turn, surface(center)[1])
            if on_field:
                rolls = isinstance(surface, HeightField)
                touches.append(
                    _rolling(surface, center, turn, on_rim, radius) if rolls else point_touch(surface, on_rim(c, s))
                )
                touches += [point_touch(surface, on_rim(math.cos(k * _THIRD), math.sin(k * _THIRD))) for k in range(3)]
                continue
            for angle in (0.0, _THIRD, -_THIRD):
                a, b = math.cos(angle), math.sin(angle)
                touches.append(point_touch(surface, on_rim(c * a - s * b, s * a + c * b)))
        return touches

    def distance(self, body: Placed, x: Any) -> tuple[Any, Any]:
        """To the mantle, a lid or a rim; inside, to the nearer of mantle and lid."""
        radius, length = body.size
        away = x - body.p
        z = body.R[:, 2] @ away
        across = away - z * body.R[:, 2]
        r = norm(across)
        outward = np.where(r > TINY, across / np.maximum(r, TINY), body.R[:, 0])
        return distance_from_sides(
            np.stack([r - radius, np.abs(z) - 0.5 * length]), [outward, np.where(z < 0.0, -1.0, 1.0) * body.R[:, 2]]
        )

    def support(self, body: Placed, direction: Any) -> Any:
        """A point of a rim."""
        radius, length = body.size
        local = body.R.T @ direction
        across = np.sqrt(local[0] * local[0] + local[1] * local[1])
        scale = radius / np.maximum(across, TINY)
        return body.at(np.stack([scale * local[0], scale * local[1], np.where(local[2] < 0.0, -0.5, 0.5) * length]))

    def core(self, body: Placed) -> Core:
        """All of it."""
        radius, length = body.size
        half = 0.5 * length
        extents = np.stack([np.array(radius), np.array(radius), np.array(half)])
        return Core(body.p, extents, 0.0, np.minimum(radius, half))

    def facet(self, body: Placed, direction: Any) -> Facet:
        """A lid, as the octagon on its rim, or the line of the mantle that looks along the direction."""
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

    def flat_lengths(self, size: Any) -> tuple[float, ...]:
        """Its thickness and its length."""
        return (2.0 * size[0], size[1]) if size[1] > 0.0 else ()

    def outline(self, size: Any) -> Array:
        """Both rims."""
        (radius, length), turn = size, numpy.linspace(0.0, 2.0 * math.pi, 32, endpoint=False)
        ring = numpy.stack([radius * numpy.cos(turn), radius * numpy.sin(turn), numpy.zeros(32)], -1)
        return numpy.concatenate([ring + numpy.array((0.0, 0.0, z)) for z in (-0.5 * length, 0.5 * length)])


def _lowest_direction(turn: Any, normal: Any) -> tuple[Any, Any]:
    """The cosine and the sine of where on a rim around z of `turn` the lowest point above a plane is."""
    x, y = -(turn[:, 0] @ normal), -(turn[:, 1] @ normal)
    size = np.sqrt(x * x + y * y)
    upright = size < 1e-9  # every direction is as low as any other
    safe = np.where(upright, 1.0, size)
    return np.where(upright, 1.0, x) / safe, np.where(upright, 0.0, y) / safe


def _rolling(surface: Any, center: Any, turn: Any, on_rim: Callable[[Any, Any], Any], radius: float) -> Touch:
    """The point of a rim that is lowest above the face of a height field on which it is; far if there is no such face.

    Held to another face, the gap would change otherwise than by the velocity of the body's point. Where the rim is deep
    in a ridge, it came there between the points that touch: to lift it would gain energy.
    """
    normal = surface.mean_normal(center, radius)
    x = on_rim(*_lowest_direction(turn, normal))
    touch, valid = point_touch(surface, x), np.array(False)
    for _ in range(2):
        normal = surface(touch.point)[1]
        other = point_touch(surface, on_rim(*_lowest_direction(turn, normal)))
        touch = Touch(*(np.where(valid, old, new) for old, new in zip(touch, other, strict=True)))
        valid = valid | (other.normal @ normal > _SAME_FACE)
    valid = valid & (touch.gap > -_DEEP * radius)
    return touch._replace(gap=np.where(valid, touch.gap, np.abs(touch.gap) + radius))
