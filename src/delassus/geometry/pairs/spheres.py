"""Contacts of a sphere with a shape that has a distance function: the distance of the center minus the radius."""

from __future__ import annotations

from typing import Any

from delassus.geometry.pairs.registry import pair
from delassus.geometry.shapes.registry import SHAPES, Placed, ShapeKind, Touch


def ball_touch(kind: ShapeKind, other: Placed, center: Any, radius: float) -> Touch:
    """The contact of a ball, with center (3,) and radius [m], and a placed shape."""
    gap, normal = kind.distance(other, center)
    return Touch(gap - radius, center - radius * normal, normal)


def _enter(kind: ShapeKind) -> None:
    """Register balls with a type of shape."""

    @pair("sphere", kind.name, points=1)
    def touches(ball: Placed, other: Placed) -> list[Touch]:
        return [ball_touch(kind, other, ball.p, ball.size[0])]


for _kind in SHAPES.values():
    if _kind.has_distance and _kind.name != "plane":
        _enter(_kind)
