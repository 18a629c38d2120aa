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
from delassus.simulation.geometry.fields import MINIMA, HeightField, RoundBody
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

    `on_field` if it may touch a height field, where a ball has several contacts. `name` is that of the geometry;
    kernels do not read it.
    """

    geometry: Geometry
    vertices: tuple[Vector, ...] = ()
    on_field: bool = False

    @property
    def count(self) -> int:
        """How many places of it may touch."""
        ball = MINIMA if self.on_field else 1
        return {"sphere": ball, "capsule": 2 * ball, "box": 8, "cylinder": 6, "ellipsoid": ball}.get(
            self.geometry.shape, len(self.vertices)
        )

    @property
    def rolls(self) -> tuple[bool, ...]:
        """Of each place, whether it is another point of the body when the body has turned; nothing for corners."""
        if self.geometry.shape in ("sphere", "capsule", "ellipsoid"):
            return (True,) * self.count
        return (True, False, False) * 2 if self.geometry.shape == "cylinder" else ()


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
            return _round(shape, surface, RoundBody(center, numpy.full(3, geometry.size[0])))
        case "capsule":
            radius, length = geometry.size
            ends = [RoundBody(placed((0.0, 0.0, z)), numpy.full(3, radius)) for z in (0.5 * length, -0.5 * length)]
            return [touch for end in ends for touch in _round(shape, surface, end)]
        case "box":
            signs = numpy.array(numpy.meshgrid(*[(0.5, -0.5)] * 3, indexing="ij")).reshape(3, 8).T
            return [_point(surface, placed(corner)) for corner in signs * numpy.array(geometry.size)]
        case "cylinder":
            return _rims(surface, placed, turn, *geometry.size)
        case "ellipsoid":
            return _round(shape, surface, RoundBody(center, numpy.array(geometry.size), turn))
        case _:
            return [_point(surface, placed(vertex)) for vertex in shape.vertices]


def _point(surface: Surface, x: Any) -> Touch:
    distance, normal = surface(x)
    return Touch(distance, x, normal)


def _round(shape: Shape, surface: Surface, body: RoundBody) -> list[Touch]:
    """Of a ball or an ellipsoid: all contacts with a height field, or that with a plane.

    The support point in direction -m is -A² m/‖A m‖, m the normal in the ellipsoid's axes, A its half-axes.
    """
    if isinstance(surface, HeightField):
        return [Touch(*contact) for contact in surface.minima(body)]
    height, normal = surface(body.center)
    m = body.halves * (normal if body.turn is None else body.turn.T @ normal)
    reach = body.halves[0] if body.turn is None else np.sqrt(np.sum(m * m))
    nearest = Touch(height - reach, body.center - body.to_world(m / reach), normal)
    # Where a robot stands is looked up on a plane, too: there, a ball has no other contacts.
    return [nearest, *[nearest._replace(gap=np.abs(height) + 10.0 * reach)] * (MINIMA - 1 if shape.on_field else 0)]


def _rims(surface: Surface, placed: Callable[[Any], Any], turn: Any, radius: float, length: float) -> list[Touch]:
    """Of the upper and the lower rim, the lowest point and those a third of a turn to both sides."""
    found = []
    for z in (0.5 * length, -0.5 * length):
        center = placed((0.0, 0.0, z))
        normal = surface.mean_normal(center, radius) if isinstance(surface, HeightField) else surface(center)[1]
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
            found.append(_point(surface, center + radius * around))
    return found
