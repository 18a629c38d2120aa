"""Contacts of shapes with planes, computed by the functions for the ground."""

from __future__ import annotations

from typing import Any

from delassus.geometry.pairs.registry import pair
from delassus.geometry.shapes.registry import SHAPES, Placed, ShapeKind, Touch
from delassus.geometry.surfaces import plane_surface


def _enter(kind: ShapeKind) -> None:
    """Register a type of shape on planes."""

    def points(size: Any) -> int:
        return kind.ground_points(size, False)

    @pair(kind.name, "plane", points=points)
    def touches(one: Placed, plane: Placed) -> list[Touch]:
        normal = plane.R[:, 2]
        return kind.ground_touches(one, plane_surface(normal, normal @ plane.p), False)


for _kind in SHAPES.values():
    if _kind.name != "plane":
        _enter(_kind)
