"""Shapes on the links of a robot, and their contacts with the ground.

Each type of shape defines its contact points (see `shapes`). A contact point is a point of the body and has its
velocity, so balls roll. On curved ground, the normal is evaluated below the center first, then below the contact point
that this normal leads to.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from delassus.compiler.graph.digest import UNREAD
from delassus.dynamics.tree.poses import Pair
from delassus.geometry.shapes.registry import SHAPES, Placed, ShapeKind, Touch
from delassus.geometry.surfaces import Surface
from delassus.model.links import Links
from delassus.model.parts import WORLD, Geometry
from delassus.model.placement import Vector


@dataclass(frozen=True)
class Shape:
    """The part of a collision shape that is compiled: joint, placement, type, lengths, or vertices of a mesh.

    `on_field` is true if it may touch a height field, on which a ball has several contacts. `hull_error` [m] is the
    Hausdorff distance between the simplified and the complete hull of a mesh; kernels do not read it.
    """

    geometry: Geometry
    vertices: tuple[Vector, ...] = ()
    on_field: bool = False
    hull_error: float = field(default=0.0, metadata=UNREAD)

    @property
    def kind(self) -> ShapeKind:
        """The type of the shape, its entry in the table of shapes."""
        return SHAPES[self.geometry.shape]

    @property
    def size(self) -> Any:
        """The lengths [m] of the shape, or the vertices of a mesh."""
        return self.vertices or self.geometry.size

    @property
    def count(self) -> int:
        """The number of points that may touch the ground."""
        return self.kind.ground_points(self.size, self.on_field)

    @property
    def rolls(self) -> tuple[bool, ...]:
        """For each contact point, whether it moves on the body when the body rotates; empty if none does."""
        return self.kind.rolling(self.size, self.on_field)


def placed_shape(shape: Shape, tree: Links, world: list[Pair]) -> Placed:
    """A shape placed in the world; `world` has the rotations and origins of the links."""
    link, placement = tree.place(shape.geometry.joint, shape.geometry.placement)
    if link == WORLD:
        return Placed(placement.R, placement.p, shape.size)
    R, p = world[link]
    return Placed(R @ placement.R, p + R @ placement.p, shape.size)


def touches(shape: Shape, tree: Links, world: list[Pair], surface: Surface) -> list[Touch]:
    """The contacts of a shape with the ground, open ones included; `world` has rotations and origins of the links."""
    return shape.kind.ground_touches(placed_shape(shape, tree, world), surface, shape.on_field)
