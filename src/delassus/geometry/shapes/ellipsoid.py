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
"""Of Newton's method: 99 % of points need 6, the worst of 10⁵ 16, with half-axes of up to 1 : 10⁴."""

_OFF_AXIS: Final = 1e-14
"""As a share of the half-axes: how far points are off planes of symmetry at least, where the way out is not unique."""


@register_shape("ellipsoid")
class Ellipsoid(ShapeKind):
    """An ellipsoid touches with the point whose normal is opposite to the ground's."""

    has_distance = True
    lengths = 3

    def ground_points(self, size: Any, on_field: bool) -> int:
        """One on a plane."""
        return round_points(on_field)

    def rolling(self, size: Any, on_field: bool) -> tuple[bool, ...]:
        """All of them."""
        return (True,) * round_points(on_field)

    def ground_touches(self, body: Placed, surface: Surface, on_field: bool) -> list[Touch]:
        """Where the normals are opposite."""
        return round_touches(RoundBody(body.p, lengths(body.size), body.R), surface, on_field)

    def distance(self, body: Placed, x: Any) -> tuple[Any, Any]:
        """To the nearest point of the surface, z = y - s m with mᵢ = yᵢ/(aᵢ² + s), y the point in the ellipsoid's axes.

        The signed distance is s |m| for the largest root s of F(s) = Σ (aᵢ yᵢ/(aᵢ² + s))² = 1. Newton's method on
        1/√F, which is concave and nearly linear, climbs to it from the left without overshooting. Unknown is
        u = s + min a², so that nothing cancels near the pole, where a point is on the plane of the longer axes.

        Cost: some 30 operations for each of `_ITERATIONS`.
        """
        halves = lengths(body.size)
        local = body.R.T @ (x - body.p)
        y = np.maximum(np.abs(local), _OFF_AXIS * halves)
        least = np.min(halves)
        past = (halves - least) * (halves + least)

        def climb(u: Any, _: Any) -> tuple[Any, None]:
            terms = (halves * y / (u + past)) ** 2
            F = np.sum(terms)
            return u + np.maximum(F * (np.sqrt(F) - 1.0) / np.sum(terms / (u + past)), 0.0), None

        u, _ = scan(climb, np.max(halves * y - past), numpy.zeros(_ITERATIONS))
        m = y / (u + past)
        size = norm(m)
        return (u - least * least) * size, body.R @ (np.where(local < 0.0, -1.0, 1.0) * m / size)

    def support(self, body: Placed, direction: Any) -> Any:
        """p + A² n/‖A n‖ in the axes of the ellipsoid, A its half-axes."""
        halves = lengths(body.size)
        m = halves * (body.R.T @ direction)
        return body.at(halves * m / norm(m))

    def core(self, body: Placed) -> Core:
        """All of it."""
        halves = lengths(body.size)
        return Core(body.p, halves, 0.0, np.min(halves))

    def outline(self, size: Any) -> Array:
        """Points on its circles of latitude."""
        return unit_sphere() * numpy.asarray(size)
