"""Places of a shape that may touch the ground, and where they do: all of them cheap, most of them far away.

    sphere      its lowest point: the gap is that of its centre less the radius
    capsule     the spheres at its two ends
    box         its eight corners
    cylinder    on each rim the lowest point, and two others, a third of a turn away, on which it stands upright
    ellipsoid   the point whose normal is opposite to the ground's
    mesh        some vertices of its convex hull

The point is one of the body, so that its velocity is that of the body there: a ball rolls. On curved ground, normals
are taken below the centre first, then below the point that they lead to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.dynamics.tree.poses import Pair
from delassus.model.links import Links
from delassus.model.model import WORLD, Geometry
from delassus.model.placement import Vector
from delassus.simulation.geometry.surfaces import Surface

THIRD = 2.0 * math.pi / 3.0


class Touch(NamedTuple):
    """A gap [m], the point (3,) [m] of the body and the ground's normal (3,), in the world."""

    gap: Any
    point: Any
    normal: Any


@dataclass(frozen=True)
class Shape:
    """What is compiled of a collision shape: its joint, its placement there, its kind, its lengths; vertices of a mesh.

    `name` is that of the geometry; kernels do not read it.
    """

    geometry: Geometry
    vertices: tuple[Vector, ...] = ()

    @property
    def count(self) -> int:
        """How many places of it may touch."""
        return {"sphere": 1, "capsule": 2, "box": 8, "cylinder": 6, "ellipsoid": 1}.get(
            self.geometry.shape, len(self.vertices)
        )

    @property
    def rolls(self) -> tuple[bool, ...]:
        """Of each place, whether it is another point of the body when the body has turned; nothing for corners."""
        return {
            "sphere": (True,),
            "capsule": (True, True),
            "cylinder": (True, False, False) * 2,
            "ellipsoid": (True,),
        }.get(self.geometry.shape, ())


def placed_shape(shape: Shape, tree: Links, world: list[Pair]) -> Pair:
    """The rotation and the centre of a shape in the world."""
    link, placement = tree.place(shape.geometry.joint, shape.geometry.placement)
    if link == WORLD:
        return placement.R, placement.p
    R, p = world[link]
    return R @ placement.R, p + R @ placement.p


def touches(shape: Shape, tree: Links, world: list[Pair], surface: Surface) -> list[Touch]:
    """Where the places of a shape touch, or would along the normal; `world` has the links' rotations and origins."""
    geometry = shape.geometry
    turn, center = placed_shape(shape, tree, world)

    def placed(local: Any) -> Any:
        return center + turn @ np.array(local)

    match geometry.shape:
        case "sphere":
            return [_ball(surface, center, geometry.size[0])]
        case "capsule":
            radius, length = geometry.size
            return [_ball(surface, placed((0.0, 0.0, z)), radius) for z in (0.5 * length, -0.5 * length)]
        case "box":
            signs = numpy.array(numpy.meshgrid(*[(0.5, -0.5)] * 3, indexing="ij")).reshape(3, 8).T
            return [_ball(surface, placed(corner), 0.0) for corner in signs * numpy.array(geometry.size)]
        case "cylinder":
            return _rims(surface, placed, turn, *geometry.size)
        case "ellipsoid":
            return [_ellipsoid(surface, center, turn, numpy.array(geometry.size))]
        case _:
            return [_ball(surface, placed(vertex), 0.0) for vertex in shape.vertices]


def _ball(surface: Surface, center: Any, radius: float) -> Touch:
    distance, normal = surface(center)
    if radius == 0.0:
        return Touch(distance, center, normal)
    distance, normal = surface(center - radius * normal)
    return Touch(distance, center - radius * normal, normal)


def _rims(surface: Surface, placed: Callable[[Any], Any], turn: Any, radius: float, length: float) -> list[Touch]:
    """Of the upper and the lower rim, the lowest point and those a third of a turn to both sides."""
    found = []
    for z in (0.5 * length, -0.5 * length):
        center = placed((0.0, 0.0, z))
        _, normal = surface(center)
        x, y = -(turn[:, 0] @ normal), -(turn[:, 1] @ normal)
        size = np.sqrt(x * x + y * y)
        upright = size < 1e-9  # every direction is as low as any other
        c, s = (
            np.where(upright, 1.0, x) / np.where(upright, 1.0, size),
            np.where(upright, 0.0, y) / np.where(upright, 1.0, size),
        )
        for angle in (0.0, THIRD, -THIRD):
            a, b = math.cos(angle), math.sin(angle)
            around = turn[:, 0] * (c * a - s * b) + turn[:, 1] * (s * a + c * b)
            found.append(_ball(surface, center + radius * around, 0.0))
    return found


def _ellipsoid(surface: Surface, center: Any, turn: Any, halves: Any) -> Touch:
    """The support point -A² m/‖A m‖ in direction -m, m the normal in the ellipsoid's axes, A its half-axes."""
    _, normal = surface(center)
    for _ in range(2):
        stretched = halves * (turn.T @ normal)
        point = center - turn @ (halves * stretched / np.sqrt(np.sum(stretched * stretched)))
        distance, normal = surface(point)
    return Touch(distance, point, normal)
