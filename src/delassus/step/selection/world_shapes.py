"""Shapes of a model's file that are fixed to the world, and the ground among them."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from delassus.model.model import Model
from delassus.model.parts import HEIGHT_FIELD, WORLD, Geometry

_LEVEL: Final = 1e-12
"""A plane with the normal n is level if 1 - n_z is below this."""


def static_shapes(model: Model) -> list[Geometry]:
    """The collision shapes that are fixed to the world, including planes."""
    return [g for g in model.geometries if g.role == "collision" and g.joint == WORLD]


def ground_shapes(model: Model) -> tuple[Geometry, ...]:
    """The shapes of a model's file that are the ground; the first one determines the friction.

    If there is a height field with the world's axes, these are the first such field and the level planes; the field is
    first, unless it is completely below the highest level plane. Without a field, it is the first level plane, or else
    the first plane.
    """
    static = static_shapes(model)
    planes = [g for g in static if g.shape == "plane"]
    level = [g for g in planes if g.placement.R[2, 2] >= 1.0 - _LEVEL]
    for g in static:
        if g.shape == HEIGHT_FIELD and np.abs(g.placement.R - np.eye(3)).max() <= _LEVEL:
            highest = max(level, key=lambda plane: plane.placement.p[2], default=None)
            if highest is not None and g.placement.p[2] + max(map(max, g.heights)) <= highest.placement.p[2]:
                return highest, *(plane for plane in level if plane is not highest), g
            return g, *level
    return tuple((level or planes)[:1])


def ground_shape(model: Model) -> Geometry | None:
    """The shape whose coefficients are those of the ground; None without a ground."""
    return next(iter(ground_shapes(model)), None)


def ground_plane(plane: Geometry) -> tuple[NDArray[np.float64], float]:
    """The normal (3,) of a plane of a model's file, and its distance from the world's origin [m]."""
    normal = plane.placement.R[:, 2]
    normal = np.array([0.0, 0.0, 1.0]) if normal[2] >= 1.0 - _LEVEL else normal
    return normal, float(normal @ plane.placement.p) + 0.0
