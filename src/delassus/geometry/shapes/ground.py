"""Contacts of points, spheres and ellipsoids with the ground."""

from __future__ import annotations

from typing import Any

import numpy

import delassus.numpy as np
from delassus.geometry.fields import MINIMA, HeightField, RoundBody
from delassus.geometry.shapes.registry import Touch
from delassus.geometry.surfaces import Surface


def point_touch(surface: Surface, x: Any) -> Touch:
    """Of a point (3,) of the body."""
    distance, normal = surface(x)
    return Touch(distance, x, normal)


def ball_halves(radius: Any) -> Any:
    """The half-axes (3,) [m] of a ball, constant if its radius is."""
    return numpy.full(3, radius) if isinstance(radius, float) else np.stack([np.array(radius)] * 3)


def round_points(on_field: bool) -> int:
    """How many contacts a ball or an ellipsoid has."""
    return MINIMA if on_field else 1


def round_touches(body: RoundBody, surface: Surface, on_field: bool) -> list[Touch]:
    """Of a ball or an ellipsoid: all contacts with a height field, or that with a plane.

    The support point in direction -m is -A² m/‖A m‖, m the normal in the ellipsoid's axes, A its half-axes.
    """
    if isinstance(surface, HeightField):
        return [Touch(*contact) for contact in surface.minima(body)]
    height, normal = surface(body.center)
    m = body.halves * (normal if body.turn is None else body.turn.T @ normal)
    reach = body.halves[0] if body.turn is None else np.sqrt(np.sum(m * m))
    nearest = Touch(height - reach, body.center - body.to_world(m / reach), normal)
    # The stance of a robot is computed on a plane, too: there, a ball has no other contacts.
    return [nearest, *[nearest._replace(gap=np.abs(height) + 10.0 * reach)] * (round_points(on_field) - 1)]
