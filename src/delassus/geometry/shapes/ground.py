"""Contacts of points, spheres and ellipsoids with the ground."""

from __future__ import annotations

from typing import Any

import numpy

import delassus.numpy as np
from delassus.geometry.fields import MINIMA, HeightField, RoundBody
from delassus.geometry.shapes.registry import Touch
from delassus.geometry.surfaces import Surface


def point_touch(surface: Surface, x: Any) -> Touch:
    """The contact of a point (3,) of the body with the ground."""
    distance, normal = surface(x)
    return Touch(distance, x, normal)


def ball_halves(radius: Any) -> Any:
    """The half-axes (3,) [m] of a ball, constant if its radius is."""
    return numpy.full(3, radius) if isinstance(radius, float) else np.stack([np.array(radius)] * 3)


def round_points(on_field: bool) -> int:
    """The number of contacts of a ball or an ellipsoid with the ground."""
    return MINIMA if on_field else 1


def round_touches(body: RoundBody, surface: Surface, on_field: bool) -> list[Touch]:
    """The contacts of a ball or an ellipsoid: all with a height field, or the one with a plane.

    The support point in direction -m is -A² m/‖A m‖, with the normal m in the ellipsoid's axes and its half-axes A.
    """
    if isinstance(surface, HeightField):
        return [Touch(*contact) for contact in surface.minima(body)]
    height, normal = surface(body.center)
    m = body.halves * (normal if body.turn is None else body.turn.T @ normal)
    reach = body.halves[0] if body.turn is None else np.sqrt(np.sum(m * m))
    nearest = Touch(height - reach, body.center - body.to_world(m / reach), normal)
    # The initial height of a robot is also computed on a plane, where a ball has a single contact.
    return [nearest, *[nearest._replace(gap=np.abs(height) + 10.0 * reach)] * (round_points(on_field) - 1)]
