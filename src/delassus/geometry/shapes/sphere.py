"""Spheres: size (radius,)."""

from __future__ import annotations

import math
from typing import Any

import numpy

import delassus.numpy as np
from delassus.geometry.fields import RoundBody
from delassus.geometry.shapes.distances import distance_from_ball, norm
from delassus.geometry.shapes.ground import ball_halves, round_points, round_touches
from delassus.geometry.shapes.registry import Array, Core, Placed, ShapeKind, Touch, register_shape
from delassus.geometry.surfaces import Surface


@register_shape("sphere")
class Sphere(ShapeKind):
    """A sphere; it touches with the point that is nearest to the other surface."""

    has_distance = True
    lengths = 1

    def ground_points(self, size: Any, on_field: bool) -> int:
        """One contact with a plane, several with a height field."""
        return round_points(on_field)

    def rolling(self, size: Any, on_field: bool) -> tuple[bool, ...]:
        """All contact points move on the body when it rotates."""
        return (True,) * round_points(on_field)

    def ground_touches(self, body: Placed, surface: Surface, on_field: bool) -> list[Touch]:
        """The contacts with the ground; on a plane, the gap is the height of the center minus the radius."""
        return round_touches(RoundBody(body.p, ball_halves(body.size[0])), surface, on_field)

    def distance(self, body: Placed, x: Any) -> tuple[Any, Any]:
        """The distance from the center minus the radius; at the center, the normal points upward."""
        return distance_from_ball(x, body.p, body.size[0], np.array((0.0, 0.0, 1.0)))

    def support(self, body: Placed, direction: Any) -> Any:
        """The support point p + r n."""
        return body.p + body.size[0] * direction / norm(direction)

    def core(self, body: Placed) -> Core:
        """The core of the rounded shape: the center."""
        return Core(body.p, np.zeros(3), body.size[0], numpy.inf)

    def core_support(self, body: Placed, direction: Any) -> Any:
        """The support point of the core: the center."""
        return body.p

    def outline(self, size: Any) -> Array:
        """The points that are drawn, on circles of latitude."""
        return float(size[0]) * unit_sphere()


def unit_sphere() -> Array:
    """Points (17 · 32, 3) of the unit sphere on circles of latitude."""
    turn = numpy.linspace(0.0, 2.0 * math.pi, 32, endpoint=False)
    rise = numpy.linspace(-0.5 * math.pi, 0.5 * math.pi, 17)
    across = numpy.outer(numpy.cos(rise), numpy.stack([numpy.cos(turn), numpy.sin(turn)])).reshape(17, 2, 32)
    height = numpy.broadcast_to(numpy.sin(rise)[:, None, None], (17, 1, 32))
    return numpy.concatenate([across, height], 1).transpose(0, 2, 1).reshape(-1, 3)
