"""Shapes on the links of a robot, and their contacts with the ground.

Each kind of shape says with which of its points (`shapes`). A point is one of the body, so that its velocity is that of
the body there: a ball rolls. On curved ground, normals are taken below the center first, then below the point that they
lead to.
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
    """What is compiled of a collision shape: its joint, its placement there, its kind, its lengths; vertices of a mesh.

    `on_field` if it may touch a height field, where a ball has several contacts. `hull_error` [m] is the Hausdorff
    distance of those vertices to all of the mesh's hull; kernels do not read it.
    """

    geometry: Geometry
    vertices: tuple[Vector, ...] = ()
    on_field: bool = False
    hull_error: float = field(default=0.0, metadata=UNREAD)

    @property
    def kind(self) -> ShapeKind:
        """Its entry in the table of shapes."""
        return SHAPES[self.geometry.shape]

    @property
    def size(self) -> Any:
        """Its lengths [m], or the vertices of a mesh."""
        return self.vertices or self.geometry.size

    @property
    def count(self) -> int:
        """How many places of it may touch."""
        return self.kind.ground_points(self.size, self.on_field)

    @property
    def rolls(self) -> tuple[bool, ...]:
        """Of each place, whether it is another point of the body when the body has turned; nothing for corners."""
        return self.kind.rolling(self.size, self.on_field)


def placed_shape(shape: Shape, tree: Links, world: list[Pair]) -> Placed:
    """A shape in the world, which has the links' rotations and origins."""
    link, placement = tree.place(shape.geometry.joint, shape.geometry.placement)
    if link == WORLD:
        return Placed(placement.R, placement.p, shape.size)
    R, p = world[link]
    return Placed(R @ placement.R, p + R @ placement.p, shape.size)


def touches(shape: Shape, tree: Links, world: list[Pair], surface: Surface) -> list[Touch]:
    """Where the places of a shape touch, or would along the normal; `world` has the links' rotations and origins."""
    return shape.kind.ground_touches(placed_shape(shape, tree, world), surface, shape.on_field)
