"""Capsules: cylinders along z with hemispherical ends; size (radius, length without the ends)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy

import delassus.numpy as np
from delassus.geometry.fields import RoundBody
from delassus.geometry.shapes.distances import distance_from_ball, norm
from delassus.geometry.shapes.ground import ball_halves, round_points, round_touches
from delassus.geometry.shapes.registry import Array, Core, Facet, Placed, ShapeKind, Touch, register_shape
from delassus.geometry.shapes.sphere import unit_sphere
from delassus.geometry.shapes.terrain import TERRAIN_POINTS, ConvexBody, convex_touches
from delassus.geometry.surfaces import Surface


@register_shape("capsule")
class Capsule(ShapeKind):
    """The points within a radius of an axis; a capsule touches the ground with the balls at its two ends."""

    has_distance = True
    lengths = 2

    def ground_points(self, size: Any, on_field: bool) -> int:
        """The contacts of the balls at its ends, plus those of its mantle on a height field."""
        return 2 * round_points(on_field) + (TERRAIN_POINTS if on_field else 0)

    def rolling(self, size: Any, on_field: bool) -> tuple[bool, ...]:
        """The contact points of the balls move on the body when it rotates."""
        return (True,) * (2 * round_points(on_field)) + (False,) * (TERRAIN_POINTS if on_field else 0)

    def ground_touches(self, body: Placed, surface: Surface, on_field: bool) -> list[Touch]:
        """The contacts of the balls at its ends, then those of its mantle with vertices and edges of a height field."""
        halves = ball_halves(body.size[0])
        ends = list(axis_ends(body))
        touches = [touch for end in ends for touch in round_touches(RoundBody(end, halves), surface, on_field)]
        if not on_field:
            return touches
        (radius, length), axis = body.size, body.R[:, 2]

        def counts(x: Any) -> Any:
            return np.abs(axis @ (x - body.p)) < 0.5 * length

        lowest = body.p[2] - 0.5 * length * np.abs(axis[2]) - radius
        mantle = ConvexBody(lambda x: self.distance(body, x), body.p, float(radius + 0.5 * length), lowest, counts)
        return touches + convex_touches(surface, mantle)

    def distance(self, body: Placed, x: Any) -> tuple[Any, Any]:
        """The distance from the nearest point of the axis, minus the radius; for a point on the axis, the normal is
        orthogonal to it."""
        radius, length = body.size
        axis = body.R[:, 2]
        nearest = body.p + axis * np.clip(axis @ (x - body.p), -0.5 * length, 0.5 * length)
        return distance_from_ball(x, nearest, radius, body.R[:, 0])

    def support(self, body: Placed, direction: Any) -> Any:
        """The support point of the ball at the end that is farther in the direction."""
        radius, length = body.size
        axis = body.R[:, 2]
        side = np.where(axis @ direction < 0.0, -0.5 * length, 0.5 * length)
        return body.p + side * axis + radius * direction / norm(direction)

    def core(self, body: Placed) -> Core:
        """The core of the rounded shape: the segment of its axis."""
        radius, length = body.size
        return Core(body.p, np.stack([np.array(0.0), np.array(0.0), np.array(0.5 * length)]), radius, numpy.inf)

    def core_support(self, body: Placed, direction: Any) -> Any:
        """An end of its axis."""
        axis = body.R[:, 2]
        return body.p + np.where(axis @ direction < 0.0, -0.5, 0.5) * body.size[1] * axis

    def facet(self, body: Placed, direction: Any) -> Facet:
        """The facet in a direction: the segment of its axis."""
        return Facet(np.stack(list(axis_ends(body))), direction, body.R[:, 2], np.array(0.0))

    def positive_lengths(self, size: Any) -> tuple[float, ...]:
        """The radius; the length may be zero, which makes it a ball."""
        return tuple(size[:1])

    def outline(self, size: Any) -> Array:
        """The points that are drawn: those of the balls at its ends."""
        radius, length = size
        ball = radius * unit_sphere()
        return numpy.concatenate([ball + numpy.array((0.0, 0.0, z)) for z in (-0.5 * length, 0.5 * length)])


def axis_ends(body: Placed) -> Iterator[Any]:
    """The centers (3,) of the balls at both ends of a capsule, the upper one first."""
    for z in (0.5 * body.size[1], -0.5 * body.size[1]):
        yield body.p + z * body.R[:, 2]
