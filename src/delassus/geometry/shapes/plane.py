"""Half-spaces below the plane through p with the normal z of R; they have no size."""

from __future__ import annotations

from typing import Any

from delassus.geometry.shapes.registry import Placed, ShapeKind, register_shape
from delassus.geometry.surfaces import plane_surface


@register_shape("plane")
class Plane(ShapeKind):
    """A plane touches every shape as the ground does."""

    has_distance = True

    def distance(self, body: Placed, x: Any) -> tuple[Any, Any]:
        """The height above the plane."""
        normal = body.R[:, 2]
        return plane_surface(normal, normal @ body.p)(x)

    def positive_lengths(self, size: Any) -> tuple[float, ...]:
        """None: the half-lengths that files give are for drawings."""
        return ()
