"""Ellipsoids: size (a, b, c), their half-axes."""

from __future__ import annotations

from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import scan
from delassus.geometry.fields import RoundBody
from delassus.geometry.shapes.distances import norm
from delassus.geometry.shapes.ground import round_points, round_touches
from delassus.geometry.shapes.registry import Array, Core, Placed, ShapeKind, Touch, lengths, register_shape
from delassus.geometry.shapes.sphere import unit_sphere
from delassus.geometry.surfaces import Surface

_ITERATIONS: Final = 16
"""Iterations of Newton's method: 99 % of points need 6, the worst of 10⁵ needs 16, for half-axes of up to 1 : 10⁴."""

_OFF_AXIS: Final = 1e-14
"""Smallest distance of points from planes of symmetry, as a fraction of the half-axes: there, the nearest point may not
be unique."""


@register_shape("ellipsoid")
class Ellipsoid(ShapeKind):
    """An ellipsoid; it touches with the point whose normal is opposite to that of the ground."""

    has_distance = True
    lengths = 3

    def ground_points(self, size: Any, on_field: bool) -> int:
        """One contact with a plane, several with a height field."""
        return round_points(on_field)

    def rolling(self, size: Any, on_field: bool) -> tuple[bool, ...]:
        """All contact points move on the body when it rotates."""
        return (True,) * round_points(on_field)

    def ground_touches(self, body: Placed, surface: Surface, on_field: bool) -> list[Touch]:
        """The contacts at points whose normals are opposite to those of the ground."""
        return round_touches(RoundBody(body.p, lengths(body.size), body.R), surface, on_field)

    def distance(self, body: Placed, x: Any) -> tuple[Any, Any]:
        """The distance from the nearest point z = y - s m, with mᵢ = yᵢ/(aᵢ² + s) for y in the ellipsoid's axes.

        The signed distance is s |m| for the largest root s of F(s) = Σ (aᵢ yᵢ/(aᵢ² + s))² = 1. Newton's method on
        1/√F, which is concave and nearly linear, converges from the left without overshooting. The unknown is
        u = s + min a², which avoids cancellation near the pole, where a point is in the plane of the longer axes.

        Cost: about 30 operations for each of `_ITERATIONS`.
        """
        halves = lengths(body.size)
        local = body.R.T @ (x - body.p)
        y = np.maximum(np.abs(local), _OFF_AXIS * halves)
        shortest = np.min(halves)
        excess = (halves - shortest) * (halves + shortest)

        def newton_step(u: Any, _: Any) -> tuple[Any, None]:
            terms = (halves * y / (u + excess)) ** 2
            F = np.sum(terms)
            return u + np.maximum(F * (np.sqrt(F) - 1.0) / np.sum(terms / (u + excess)), 0.0), None

        u, _ = scan(newton_step, np.max(halves * y - excess), numpy.zeros(_ITERATIONS))
        m = y / (u + excess)
        size = norm(m)
        return (u - shortest * shortest) * size, body.R @ (np.where(local < 0.0, -1.0, 1.0) * m / size)

    def support(self, body: Placed, direction: Any) -> Any:
        """The support point p + A² n/‖A n‖ in the axes of the ellipsoid, with the half-axes A."""
        halves = lengths(body.size)
        m = halves * (body.R.T @ direction)
        return body.at(halves * m / norm(m))

    def core(self, body: Placed) -> Core:
        """The core is the whole ellipsoid."""
        halves = lengths(body.size)
        return Core(body.p, halves, 0.0, np.min(halves))

    def outline(self, size: Any) -> Array:
        """The points that are drawn, on circles of latitude."""
        return unit_sphere() * numpy.asarray(size)
