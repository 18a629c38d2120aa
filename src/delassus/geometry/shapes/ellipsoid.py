"""Ellipsoids: size (a, b, c), their half-axes."""

from __future__ import annotations

from typing import Any

import numpy

from delassus.geometry.fields import RoundBody
from delassus.geometry.shapes.distances import norm
from delassus.geometry.shapes.ground import round_points, round_touches
from delassus.geometry.shapes.registry import Array, Placed, ShapeKind, Touch, lengths, register_shape
from delassus.geometry.shapes.sphere import unit_sphere
from delassus.geometry.surfaces import Surface


@register_shape("ellipsoid")
class Ellipsoid(ShapeKind):
    """An ellipsoid touches with the point whose normal is opposite to the ground's."""

    def ground_points(self, size: Any, on_field: bool) -> int:
        """One on a plane."""
        return round_points(on_field)

    def rolling(self, size: Any, on_field: bool) -> tuple[bool, ...]:
        """All of them."""
        return (True,) * round_points(on_field)

    def ground_touches(self, body: Placed, surface: Surface, on_field: bool) -> list[Touch]:
        """Where the normals are opposite."""
        return round_touches(RoundBody(body.p, numpy.array(body.size), body.R), surface, on_field)

    def support(self, body: Placed, direction: Any) -> Any:
        """p + A² n/‖A n‖ in the axes of the ellipsoid, A its half-axes."""
        halves = lengths(body.size)
        m = halves * (body.R.T @ direction)
        return body.at(halves * m / norm(m))

    def ball_radius(self, size: Any) -> float:
        """Its longest half-axis."""
        return float(max(size))

    def outline(self, size: Any) -> Array:
        """Points on its circles of latitude."""
        return unit_sphere() * numpy.asarray(size)
