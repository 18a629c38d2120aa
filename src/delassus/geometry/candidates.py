"""Places of a shape that may touch the ground, and where they do: all of them cheap, most of them far away.

    sphere      its lowest point: the gap is that of its centre less the radius
    capsule     the spheres at its two ends
    box         its eight corners
    cylinder    on each rim the lowest point, and others on which it stands upright
    ellipsoid   the point whose normal is opposite to the ground's
    mesh        some vertices of its convex hull

The point is one of the body, so that its velocity is that of the body there: a ball rolls. On curved ground, normals
are taken below the centre first, then below the point that they lead to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.dynamics.tree.poses import Pair
from delassus.geometry.fields import MINIMA, HeightField, RoundBody
from delassus.geometry.surfaces import Surface
from delassus.model.links import Links
from delassus.model.model import WORLD, Geometry
from delassus.model.placement import Vector

THIRD = 2.0 * math.pi / 3.0

_SAME_FACE: Final = 1.0 - 1e-12
"""The cosine of the angle between normals that are those of one face of a height field."""

_DEEP: Final = 0.02
"""Of a cylinder's radius: a rim that is deeper in a height field has not come there by its lowest point."""


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
        rims = 8 if self.on_field else 6
        return {"sphere": ball, "capsule": 2 * ball, "box": 8, "cylinder": rims, "ellipsoid": ball}.get(
            self.geometry.shape, len(self.vertices)
        )

    @property
    def rolls(self) -> tuple[bool, ...]:
        """Of each place, whether it is another point of the body when the body has turned; nothing for corners."""
        if self.geometry.shape in ("sphere", "capsule", "ellipsoid"):
            return (True,) * self.count
        return (True, *(False,) * (self.count // 2 - 1)) * 2 if self.geometry.shape == "cylinder" else ()


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
            return _rims(shape, surface, placed, turn)
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


def _rims(shape: Shape, surface: Surface, placed: Callable[[Any], Any], turn: Any) -> list[Touch]:
    """Of the upper and the lower rim, the lowest point and others, on which it stands upright.

    On a plane, those a third of a turn to both sides of the lowest one. On a height field, three that are fixed to the
    body, since others would jump from one side of a ridge to the other.
    """
    (radius, length), found = shape.geometry.size, []
    for z in (0.5 * length, -0.5 * length):
        center = placed((0.0, 0.0, z))

        def on_rim(c: Any, s: Any, center: Any = center) -> Any:
            return center + radius * (turn[:, 0] * c + turn[:, 1] * s)

        c, s = _lowest_direction(turn, surface(center)[1])
        if shape.on_field:
            is_field = isinstance(surface, HeightField)
            lowest = _rolling(surface, center, turn, on_rim, radius) if is_field else _point(surface, on_rim(c, s))
            found.append(lowest)
            found += [_point(surface, on_rim(math.cos(k * THIRD), math.sin(k * THIRD))) for k in range(3)]
            continue
        for angle in (0.0, THIRD, -THIRD):
            a, b = math.cos(angle), math.sin(angle)
            found.append(_point(surface, on_rim(c * a - s * b, s * a + c * b)))
    return found


def _lowest_direction(turn: Any, normal: Any) -> tuple[Any, Any]:
    """The cosine and the sine of where on a rim around z of `turn` the lowest point above a plane is."""
    x, y = -(turn[:, 0] @ normal), -(turn[:, 1] @ normal)
    size = np.sqrt(x * x + y * y)
    upright = size < 1e-9  # every direction is as low as any other
    safe = np.where(upright, 1.0, size)
    return np.where(upright, 1.0, x) / safe, np.where(upright, 0.0, y) / safe


def _rolling(surface: Any, center: Any, turn: Any, on_rim: Callable[[Any, Any], Any], radius: float) -> Touch:
    """The point of a rim that is lowest above the face of a height field on which it is; far if there is no such face.

    Held to another face, the gap would change otherwise than by the velocity of the body's point. Where the rim is deep
    in a ridge, it came there between the points that touch: to lift it would gain energy.
    """
    normal = surface.mean_normal(center, radius)
    x = on_rim(*_lowest_direction(turn, normal))
    touch, valid = _point(surface, x), np.array(False)
    for _ in range(2):
        normal = surface(touch.point)[1]
        other = _point(surface, on_rim(*_lowest_direction(turn, normal)))
        touch = Touch(*(np.where(valid, old, new) for old, new in zip(touch, other, strict=True)))
        valid = valid | (other.normal @ normal > _SAME_FACE)
    valid = valid & (touch.gap > -_DEEP * radius)
    return touch._replace(gap=np.where(valid, touch.gap, np.abs(touch.gap) + radius))
