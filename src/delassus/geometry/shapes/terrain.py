"""Contacts of convex shapes with vertices and edges of a height field: a ridge below a box, a spike below a plate.

The vertices of a shape touch the triangles below them. The other contacts of two polyhedra are between vertices of the
terrain and faces of the shape, and between edges. Both are minima of the signed distance f of points x of the terrain
from the shape along the edges of the grid. f is convex: on an edge x(t), two points with slopes f' of opposite signs
enclose the minimum, and the intersection of their tangents is the next point. Over a face, f is linear, so a polyhedron
needs few tangents. The normal at a minimum between two faces with normals n₁, n₂ and slopes s₁ < 0 < s₂ is

    n ∝ s₂ n₁ - s₁ n₂

It is orthogonal to the edge of the grid and to that of the shape. A minimum on the surface has n · (w - x) ≥ 0 for the
other corners w of all triangles around x. Other minima are not contacts: with them, a box that slides on level ground
would hit every point of the grid.

The space below the surface is solid, so contacts must not push a shape down into it. For points inside a shape, f omits
the faces that face upward (by 30° or more): a spike leaves even a thin plate through the side where it entered.

Five minima are selected: the smallest, and those that would be the smallest if the shape were tilted slightly to each
of four sides. For a ridge below a box, they include its two ends.

Cost: 4 distances for each grid point below the shape, and 12 more if it is near and an edge leaves the shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import scan
from delassus.geometry.fields import HeightField
from delassus.geometry.shapes.registry import Touch
from delassus.geometry.surfaces import Surface

TERRAIN_POINTS: Final = 5
"""Largest number of contacts of a shape with vertices and edges of a height field."""

_REACH: Final = 1.1
"""Horizontal distance from the center within which grid points are examined, as a multiple of the shape's radius."""

_SKIN: Final = 2e-6
"""Added to gaps [m], so that a box on level ground stands on its corners instead of the grid points below it."""

_TILT: Final = 1e-3
"""Angle [rad] of the tilts that select the ends of a patch."""

_TANGENTS: Final = 6
"""Number of intersections of tangents on an edge."""

_LEAST: Final = 1e-12
"""Difference of slopes, relative to the length of an edge, below which they count as equal."""

_FAR: Final = 1e9
"""Placeholder for the gap [m] of contacts that do not exist, for comparisons."""

_NEIGHBORS: Final = ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (-1.0, 0.0), (0.0, -1.0), (-1.0, -1.0))
"""Neighbors of a grid point along x, y and the diagonal; the edges to the first three belong to it."""

_BESIDE: Final = ((2, 4), (2, 3), (0, 1))
"""For each of these three edges, the neighbors that are the other corners of the two triangles next to it."""

_LEVEL: Final = 0.01
"""Relative slope up to which surfaces count as parallel."""

_SIDES: Final = numpy.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
"""The directions in which a shape is tilted; the first is no tilt."""

Distance = Callable[[Any], tuple[Any, Any]]
"""A function that maps a point (3,) to its signed distance [m] from a shape, negative inside, and the normal (3,)."""


class ConvexBody(NamedTuple):
    """A convex shape, for contacts with a height field.

    Attributes:
        distance: The signed distance of points from the shape, a convex function.
        center: (3,) the center [m].
        radius: The radius [m] of a ball around the center that contains the shape, a constant of the kernel.
        lowest: The height [m] of its lowest point.
        counts: Whether a point (3,) of the terrain is not covered by other contacts of the shape; None for all points.
    """

    distance: Distance
    center: Any
    radius: float
    lowest: Any
    counts: Callable[[Any], Any] | None = None


class _Minimum(NamedTuple):
    """The gap [m] of a point (3,) of the terrain, the outward normal (3,) of the shape, and the feature."""

    gap: Any
    point: Any
    normal: Any
    feature: Any


def terrain_touches(field: HeightField, body: ConvexBody) -> list[Touch]:
    """Contacts of a shape with vertices and edges of a height field; unused ones have large gaps."""
    grid, radius = field.field, _REACH * body.radius
    first = grid.first_point(body.center, radius)

    def node(i: Any, j: Any) -> Any:
        row, column = np.clip(i, 0.0, grid.rows - 1.0), np.clip(j, 0.0, grid.columns - 1.0)
        height = np.take(field.heights, row * float(grid.columns) + column)
        return np.stack([grid.origin[0] + grid.spacing[0] * i, grid.origin[1] + grid.spacing[1] * j, height])

    def visit(best: Any, shift: Any) -> Any:
        i, j = first[0] + shift[0], first[1] + shift[1]
        x, around = node(i, j), [node(i + u, j + v) for u, v in _NEIGHBORS]
        index = 4.0 * (i * float(grid.columns) + j)
        below = body.lowest - np.maximum(x[2], np.max(np.stack([end[2] for end in around[:3]])))
        level = _Minimum(below, x, np.array((0.0, 0.0, -1.0)), index)
        is_near = below < (_REACH - 1.0) * body.radius
        updated = _with_minimum(best, level, body.center)
        return cond(is_near, lambda best: _with_minima_around(best, body, x, around, index), updated, best), None

    shifts = grid.shifts(radius)
    none = _Minimum(np.array(_FAR), np.array(body.center), np.array((0.0, 0.0, -1.0)), np.array(-1.0))
    minima, _ = scan(visit, (none,) * TERRAIN_POINTS, shifts)
    touches: list[Touch] = []
    for k, (gap, point, normal, feature) in enumerate(minima):
        absent = gap > 0.5 * _FAR
        for other in minima[:k]:
            absent = absent | (feature == other[3])
        gap_or_unused = np.where(absent, 10.0 * body.radius + np.abs(body.lowest - point[2]), gap + _SKIN)
        touches.append(Touch(gap_or_unused, point - np.where(absent, 0.0, gap) * normal, -normal, feature))
    return touches


def convex_touches(surface: Surface, body: ConvexBody) -> list[Touch]:
    """Contacts of a shape with vertices and edges of the ground; on a plane, all of them have large gaps."""
    if isinstance(surface, HeightField):
        return terrain_touches(surface, body)
    height, normal = surface(body.center)
    return [Touch(np.abs(height) + 10.0 * body.radius, body.center, normal)] * TERRAIN_POINTS


def vertex_touches(surface: Surface, vertices: Any, at: Callable[[Any], Any], center: Any) -> list[Touch]:
    """Contacts of the vertices (n, 3) of a shape with the smallest gaps, without and with tilts; `at` maps a vertex to
    the world."""

    def visit(best: Any, item: Any) -> Any:
        point = at(item[0])
        gap, normal = surface(point)
        return _with_minimum(best, _Minimum(gap, point, normal, item[1]), center), None

    none = _Minimum(np.array(_FAR), np.array(center), np.array((0.0, 0.0, 1.0)), np.array(-1.0))
    minima, _ = scan(visit, (none,) * TERRAIN_POINTS, (vertices, numpy.arange(float(len(vertices)))))
    touches = []
    for k, (gap, point, normal, feature) in enumerate(minima):
        absent = np.array(False)
        for other in minima[:k]:
            absent = absent | (feature == other[3])
        unused_gap = 10.0 * np.max(np.abs(vertices)) + np.abs(gap)
        touches.append(Touch(np.where(absent, unused_gap, gap), point, normal, feature))
    return touches


def _with_minimum(best: tuple[_Minimum, ...], other: _Minimum, center: Any) -> tuple[_Minimum, ...]:
    """Insert a minimum into the smallest ones for all tilts."""
    arm, minima = other.point - center, []
    for side, least in zip(_SIDES, best, strict=True):
        least_arm = least.point - center
        lower = other.gap - _TILT * (side @ arm[:2]) < least.gap - _TILT * (side @ least_arm[:2])
        minima.append(_Minimum(*(np.where(lower, new, old) for new, old in zip(other, least, strict=True))))
    return tuple(minima)


# --- the edges of one point of the grid -------------------------------------------------------------------------------


def _with_minima_around(
    best: tuple[_Minimum, ...], body: ConvexBody, x: Any, around: list[Any], index: Any
) -> tuple[_Minimum, ...]:
    """Insert the minima at a grid point (3,) and inside its edges into the smallest ones."""
    gap, normal = body.distance(x)
    vertex_minimum = _Minimum(_gap_if_minimum(body, gap, x, normal, around), x, normal, index)
    best = _with_minimum(best, vertex_minimum, body.center)

    def visit(best: Any, edge: Any) -> Any:
        end, one, other, feature = edge
        along = end - x
        at_end = body.distance(end)
        left = _Bracket(np.array(0.0), gap, normal @ along, normal)
        right = _Bracket(np.array(1.0), at_end[0], at_end[1] @ along, at_end[1])
        slope = _TILT * np.sqrt(along @ along)  # below this slope, the edge is parallel to a face
        inside = ((left.slope < -slope) & (right.slope > -slope)) | ((left.slope < slope) & (right.slope > slope))

        def add(best: Any) -> Any:
            depth, point, edge_normal = _minimum_on_edge(body, x, along, left, right)
            depth = _gap_if_minimum(body, depth, point, edge_normal, [one, other])
            return _with_minimum(best, _Minimum(depth, point, edge_normal, feature), body.center)

        return cond(inside, add, best, best), None

    ends, ones, others = (np.stack([around[k] for k in column]) for column in ((0, 1, 2), *zip(*_BESIDE, strict=True)))
    best, _ = scan(visit, best, (ends, ones, others, index + numpy.array([1.0, 2.0, 3.0])))
    return tuple(_Minimum(*one) for one in best)


class _Bracket(NamedTuple):
    """One side of the minimum: the position on the edge, from 0 to 1, the distance, its slope, and the normal (3,)."""

    share: Any
    gap: Any
    slope: Any
    normal: Any


def _minimum_on_edge(body: ConvexBody, x: Any, along: Any, left: _Bracket, right: _Bracket) -> tuple[Any, Any, Any]:
    """The gap, the point (3,) and the normal (3,) of the minimum between two sides of it."""
    tolerance = _LEAST * np.sqrt(along @ along)

    def intersect_tangents(sides: Any, _: Any) -> Any:
        left, right, *_ = sides
        rise = right.slope - left.slope
        position = (left.gap - right.gap + right.slope * right.share - left.slope * left.share) / np.maximum(
            rise, tolerance
        )
        position = np.clip(position, left.share, right.share)
        gap, normal = body.distance(x + position * along)
        bracket = _Bracket(position, gap, normal @ along, normal)
        falls = bracket.slope < 0.0
        left = _Bracket(*(np.where(falls, new, old) for new, old in zip(bracket, left, strict=True)))
        right = _Bracket(*(np.where(falls, old, new) for new, old in zip(bracket, right, strict=True)))
        return (left, right, position, gap), None

    (left, right, position, gap), _ = scan(
        intersect_tangents, (left, right, left.share, left.gap), numpy.zeros(_TANGENTS)
    )
    weight = np.clip(right.slope / np.maximum(right.slope - left.slope, tolerance), 0.0, 1.0)
    mean = weight * left.normal + (1.0 - weight) * right.normal
    size = np.sqrt(mean @ mean)
    point = x + position * along
    # Inside, the shortest path out is orthogonal to both edges, and longer than that to either face.
    return np.where(gap < 0.0, gap / size, gap), point, mean / size


def _gap_if_minimum(body: ConvexBody, gap: Any, point: Any, normal: Any, others: list[Any]) -> Any:
    """The gap of a point of the terrain; large if it is not a minimum on the triangles with corners `others`."""
    is_contact = np.array(True) if body.counts is None else body.counts(point)
    for corner in others:
        direction = corner - point
        is_contact = is_contact & (normal @ direction >= -_LEVEL * np.sum(np.abs(direction)))
    return np.where(is_contact, gap, _FAR)
