"""Planes: half-spaces below a plane through p whose normal is the z axis of R; they have no size."""

from __future__ import annotations

from typing import Any

from delassus.geometry.shapes.registry import Placed, ShapeKind, register_shape
from delassus.geometry.surfaces import plane_surface


@register_shape("plane")
class Plane(ShapeKind):
    """A plane; it touches other shapes as the ground does."""

    has_distance = True

    def distance(self, body: Placed, x: Any) -> tuple[Any, Any]:
        """The height above the plane."""
        normal = body.R[:, 2]
        return plane_surface(normal, normal @ body.p)(x)

    def positive_lengths(self, size: Any) -> tuple[float, ...]:
        """No lengths, since the half-lengths in files are for drawings only."""
        return ()
