"""Height fields: heights on a grid, rows along x and columns along y, continued flat beyond its edges.

A cell is two triangles that share the diagonal from its first point (i, j) to (i + 1, j + 1), as in MuJoCo:

    (i, j+1) b --- d (i+1, j+1)        the lower triangle a c d, where s ≥ t,
             |   / |                   the upper one a b d, where s < t,
             | /   |                   for the coordinates s, t ∈ [0, 1] in the cell along x and y
      (i, j) a --- c (i+1, j)

A point touches the triangle below it. A ball or an ellipsoid is the set |y| ≤ 1 with y = B (x - center); its contacts
are the local minima of |y| on the surface, inside a face, on an edge or at a vertex. On a step, these are the contacts
with the floor and with the riser. The smallest is the distance; it changes by at most the motion of the body, so no
body is deep in the ground without having touched its surface before. A point p on an edge or at a vertex is a minimum
if p · (w - p) ≥ 0 for the other corners w of all triangles around it (y = 0 is the center).

Cost: about 400 operations and 7 gathers for each of (⌈2.2 r/spacing⌉ + 1)² cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import scan

MINIMA: Final = 3
"""Largest number of contacts of a ball with a height field, such as a floor and two walls."""

MOST_SPACINGS: Final = 50.0
"""Largest radius of a ball, in grid spacings; a larger one would overlap more than 12 000 cells."""

_REACH: Final = 1.1
"""Horizontal distance from the center within which cells are examined, as a multiple of the body's radius."""

_ROUNDING: Final = 1e-9
"""Tolerance of the tests whether a point is within a face or edge, as a fraction of the compared lengths."""

_SAME: Final = 1e-12
"""Squared distance, relative to the body's size, below which two minima count as one that two triangles share."""

_NONE: Final = 1e15
"""Placeholder for the squared distance, in radii, of a minimum that does not exist."""

_ORDER: Final = numpy.array([0.3, 0.1, 1.0])
"""The direction by which contacts are ordered, so that their order does not depend on which one is nearest."""


@dataclass(frozen=True)
class Field:
    """The grid of a height field: numbers of points and spacings [m] along x and y, and the first point (x, y) [m]."""

    rows: int
    columns: int
    spacing: tuple[float, float]
    origin: tuple[float, float]

    def first_point(self, center: Any, radius: float) -> list[Any]:
        """The indices, along x and y, of the grid point at or below the corner center - radius [m] of a square."""
        return [np.floor((center[k] - radius - self.origin[k]) / self.spacing[k]) for k in range(2)]

    def shifts(self, radius: float) -> Any:
        """Index offsets (n, 2) from the first point to all points that may be within the radius."""
        rows, columns = (math.ceil(2.0 * radius / spacing) + 1 for spacing in self.spacing)
        return numpy.array([(u, v) for u in range(rows) for v in range(columns)], float)


class RoundBody(NamedTuple):
    """A ball or an ellipsoid: center (3,), half-axes (3,) [m], and their directions (3, 3); None for a ball."""

    center: Any
    halves: Any
    turn: Any = None

    def to_unit(self, x: Any) -> Any:
        """B x for an arm x (3,) from the center: coordinates in which the body is the unit ball."""
        return (x if self.turn is None else self.turn.T @ x) / self.halves

    def to_world(self, y: Any) -> Any:
        """B⁻¹ y [m]."""
        x = self.halves * y
        return x if self.turn is None else self.turn @ x

    def gradient(self, y: Any) -> Any:
        """Bᵀ y [1/m]."""
        x = y / self.halves
        return x if self.turn is None else self.turn @ x


@dataclass(frozen=True, eq=False)
class HeightField:
    """The surface of a height field; `heights` (rows, columns) [m]."""

    field: Field
    heights: Any

    def __call__(self, x: Any) -> tuple[Any, Any]:
        """The signed distance [m] of a point (3,) from the plane of the triangle below it, and the normal (3,)."""
        field = self.field
        i, s, inside_x = _cell((x[0] - field.origin[0]) / field.spacing[0], field.rows)
        j, t, inside_y = _cell((x[1] - field.origin[1]) / field.spacing[1], field.columns)
        at = i * float(field.columns) + j
        shifts = (0.0, 1.0, float(field.columns), float(field.columns) + 1.0)
        a, b, c, d = (np.take(self.heights, at + shift) for shift in shifts)
        lower = s >= t
        rise_x, rise_y = np.where(lower, c - a, d - b), np.where(lower, d - c, b - a)
        height = a + rise_x * s + rise_y * t
        slope_x = np.where(inside_x, rise_x, 0.0) / field.spacing[0]
        slope_y = np.where(inside_y, rise_y, 0.0) / field.spacing[1]
        up = 1.0 / np.sqrt(1.0 + slope_x * slope_x + slope_y * slope_y)
        return (x[2] - height) * up, np.stack([-slope_x * up, -slope_y * up, up])

    def minima(self, body: RoundBody) -> list[tuple[Any, Any, Any]]:
        """Gaps [m], points of the body and normals (3,) of its `MINIMA` contacts; unused ones have large gaps."""
        height, flat = self(body.center)
        side = np.where(height < 0.0, -1.0, 1.0)  # for a center below the ground, the normal is along the shortest path
        support = body.halves * (flat if body.turn is None else body.turn.T @ flat)
        reach = np.sqrt(np.sum(support * support))
        lowest = -side * support / reach
        # Without a minimum nearby, the ground is farther away, and the distance is that from the plane below.
        lower_bound = np.maximum(np.abs(height) / reach, np.where(side > 0.0, _REACH, 0.0))
        contacts = []
        for k, (square, y) in enumerate(self._nearest(body)):
            absent = square > 0.5 * _NONE
            if k:
                absent = absent | (side < 0.0)
            size = np.where(absent, lower_bound + (10.0 if k else 0.0), np.sqrt(square))
            unit = np.where(absent | (size < _SAME), lowest, y / np.maximum(size, _SAME))
            gradient = body.gradient(unit)
            slope = np.sqrt(np.sum(gradient * gradient))
            away = np.where(absent, 1.0, side) if k else side
            gap, normal = (away * size - 1.0) / slope, -side * gradient / slope
            contacts.append((gap, body.center + side * body.to_world(unit), normal))
        return _in_order(contacts, side, (_REACH - 1.0) * float(numpy.min(body.halves)))

    def _nearest(self, body: RoundBody) -> list[tuple[Any, Any]]:
        """The values |y|² and points y (3,) of the smallest local minima of |y|, in ascending order."""
        field, center = self.field, body.center
        radius = _REACH * float(numpy.max(body.halves))
        first = field.first_point(center, radius)

        def node(i: Any, j: Any) -> Any:
            row, column = np.clip(i, 0.0, field.rows - 1.0), np.clip(j, 0.0, field.columns - 1.0)
            height = np.take(self.heights, row * float(field.columns) + column)
            x, y = field.origin[0] + field.spacing[0] * i, field.origin[1] + field.spacing[1] * j
            return body.to_unit(np.stack([x, y, height]) - center)

        def visit(best: Any, shift: Any) -> Any:
            i, j = first[0] + shift[0], first[1] + shift[1]
            around = {(u, v): node(i + u, j + v) for u, v in _NEIGHBORS}
            for corner in _cell_minima(around):
                best = _insert_minimum(best, *corner)
            return best, None

        shifts = field.shifts(radius)
        none = tuple((np.array(_NONE), np.zeros(3)) for _ in range(MINIMA))
        best, _ = scan(visit, none, shifts)
        return list(best)


_NEIGHBORS: Final = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (-1.0, 0.0), (0.0, -1.0), (-1.0, -1.0))


def _cell_minima(around: dict[tuple[float, float], Any]) -> list[tuple[Any, Any]]:
    """Minima of |y| on the two faces of a cell, on the edges from its first point, and at that point: at most one for
    each triangle."""
    a, c, b, d, left, below, beyond = (around[at] for at in _NEIGHBORS)
    lower = [_face(a, c, d), _edge(a, c, d, below), _edge(a, d, c, b), _vertex(a, [b, c, d, left, below, beyond])]
    upper = [_face(a, b, d), _edge(a, b, d, left)]
    corners = []
    for candidates in (lower, upper):  # a triangle has one minimum, in one of its parts
        square, y = candidates[0]
        for other, point in candidates[1:]:
            square, y = np.minimum(square, other), np.where(other < square, point, y)
        corners.append((square, y))
    return corners


def _measure(valid: Any, y: Any) -> tuple[Any, Any]:
    return np.where(valid, np.sum(y * y), _NONE), y


def _face(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """The foot of the perpendicular from y = 0 to a triangle, if it is inside the triangle."""
    u, v = b - a, c - a
    n = np.cross(u, v)
    square = np.sum(n * n)
    s, t = -(np.cross(a, v) @ n) / square, -(np.cross(u, a) @ n) / square
    return _measure((s >= -_ROUNDING) & (t >= -_ROUNDING) & (s + t <= 1.0 + _ROUNDING), (a @ n) / square * n)


def _edge(a: Any, b: Any, *others: Any) -> tuple[Any, Any]:
    """The foot of the perpendicular from y = 0 to an edge, if |y| increases on the triangles with corners `others`."""
    along = b - a
    fraction = -(a @ along) / np.sum(along * along)
    y = a + fraction * along
    valid = (fraction >= -_ROUNDING) & (fraction <= 1.0 + _ROUNDING)
    for corner in others:
        valid = valid & _recedes(y, corner - a)
    return _measure(valid, y)


def _vertex(a: Any, others: list[Any]) -> tuple[Any, Any]:
    """A vertex, if |y| increases along all edges from it."""
    valid = _recedes(a, others[0] - a)
    for corner in others[1:]:
        valid = valid & _recedes(a, corner - a)
    return _measure(valid, a)


def _recedes(y: Any, direction: Any) -> Any:
    """Whether |y| does not decrease along a direction d: y · d ≥ 0 up to rounding."""
    return y @ direction >= -_ROUNDING * (np.sum(np.abs(y)) * np.sum(np.abs(direction)))


def _insert_minimum(best: tuple[tuple[Any, Any], ...], square: Any, y: Any) -> tuple[tuple[Any, Any], ...]:
    """Insert a minimum into a list in ascending order, unless the list contains it."""
    for _, place in best:
        offset = y - place
        square = np.where(np.sum(offset * offset) > _SAME * np.maximum(square, 1.0), square, _NONE)
    minima = []
    for smallest, place in best:
        nearer = square < smallest
        minima.append((np.where(nearer, square, smallest), np.where(nearer, y, place)))
        square, y = np.where(nearer, smallest, square), np.where(nearer, place, y)
    return tuple(minima)


def _in_order(contacts: list[tuple[Any, Any, Any]], side: Any, limit: float) -> list[tuple[Any, Any, Any]]:
    """Contacts ordered by the directions of their normals; those with gaps of `limit` [m] or more come last."""
    ranked = []
    for k, (gap, point, normal) in enumerate(contacts):
        rank = np.where((gap < limit) & (side > 0.0), -(normal @ _ORDER), 10.0 + float(k))
        ranked.append((rank, gap, point, normal))
    for k in (0, 1, 0):
        (one, two), swap = ranked[k : k + 2], ranked[k + 1][0] < ranked[k][0]
        ranked[k] = tuple(np.where(swap, y, x) for x, y in zip(one, two, strict=True))
        ranked[k + 1] = tuple(np.where(swap, x, y) for x, y in zip(one, two, strict=True))
    return [contact[1:] for contact in ranked]


def _cell(coordinate: Any, count: int) -> tuple[Any, Any, Any]:
    """The index of the cell of a coordinate, the position in the cell from 0 to 1, and whether it is on the grid."""
    cell = np.clip(np.floor(coordinate), 0.0, float(count - 2))
    fraction = coordinate - cell
    return cell, np.clip(fraction, 0.0, 1.0), (fraction >= 0.0) & (fraction <= 1.0)
