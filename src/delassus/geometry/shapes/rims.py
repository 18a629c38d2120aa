"""Contacts of rims of cylinders with faces of a height field.

Relative to the plane of a triangle with normal n, the lowest point of a rim with axis a is center - r u/|u|, where u is
the component of n orthogonal to a. It is a contact if it is above the triangle, since the gap then has a minimum inside
the face. Minima on edges and at vertices are in `terrain`.

Cost: about 120 operations and 4 gathers for each of (⌈2.2 r/spacing⌉ + 1)² cells.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import scan
from delassus.geometry.fields import HeightField
from delassus.geometry.shapes.distances import norm
from delassus.geometry.shapes.registry import Touch

RIM_POINTS: Final = 2
"""Largest number of contacts of a rim with faces, as for a wheel in a groove."""

_REACH: Final = 1.1
"""Horizontal distance from the center within which cells are examined, as a multiple of the radius."""

_UPRIGHT: Final = 1e-9
"""Component of a normal orthogonal to the axis below which all points of a rim are equally low."""

_ROUNDING: Final = 1e-9
"""Largest distance outside a triangle, as a fraction of a cell, at which a point counts as above it."""

_FAR: Final = 1e9
"""Placeholder for the gap [m] of contacts that do not exist, for comparisons."""


class _Lowest(NamedTuple):
    """A gap [m], the point (3,) of the rim, the normal (3,) of the triangle, and the index of the triangle."""

    gap: Any
    point: Any
    normal: Any
    feature: Any


def rim_touches(field: HeightField, center: Any, axis: Any, radius: float) -> list[Touch]:
    """The smallest gaps of a rim with center (3,), axis (3,) and constant radius [m] above faces of a height field."""
    grid, reach = field.field, _REACH * radius
    first = grid.first_point(center, reach)

    def height(i: Any, j: Any) -> Any:
        row, column = np.clip(i, 0.0, grid.rows - 1.0), np.clip(j, 0.0, grid.columns - 1.0)
        return np.take(field.heights, row * float(grid.columns) + column)

    def visit(best: Any, shift: Any) -> Any:
        i, j = first[0] + shift[0], first[1] + shift[1]
        a, b, c, d = height(i, j), height(i, j + 1.0), height(i + 1.0, j), height(i + 1.0, j + 1.0)
        for triangle, rises in enumerate((((c - a), (d - c)), ((d - b), (b - a)))):
            n = np.stack([-rises[0] / grid.spacing[0], -rises[1] / grid.spacing[1], np.array(1.0)])
            n = n / norm(n)
            u = n - (n @ axis) * axis
            size = norm(u)
            x = center - radius * u / np.maximum(size, _UPRIGHT)
            s = (x[0] - grid.origin[0]) / grid.spacing[0] - i
            t = (x[1] - grid.origin[1]) / grid.spacing[1] - j
            along, across = (s, t) if triangle == 0 else (t, s)
            above = (along <= 1.0 + _ROUNDING) & (across >= -_ROUNDING) & (across <= along + _ROUNDING)
            gap = (x[2] - a - rises[0] * s - rises[1] * t) * n[2]
            gap = np.where(above & (size > _UPRIGHT), gap, _FAR)
            feature = 2.0 * (i * float(grid.columns) + j) + float(triangle)
            best = _insert_minimum(best, _Lowest(gap, x, n, feature), radius)
        return best, None

    shifts = grid.shifts(reach)
    none = _Lowest(np.array(_FAR), np.array(center), np.array((0.0, 0.0, 1.0)), np.array(-1.0))
    lowest, _ = scan(visit, (none,) * RIM_POINTS, shifts)
    unused_gap = 10.0 * radius + np.abs(field(center)[0])
    return [Touch(np.where(gap > 0.5 * _FAR, unused_gap, gap), *details) for gap, *details in lowest]


def _insert_minimum(best: tuple[_Lowest, ...], other: _Lowest, radius: float) -> tuple[_Lowest, ...]:
    """Insert a gap into the list of the smallest ones, unless the list contains it from a neighboring triangle."""
    for one in best:
        same = norm(one.point - other.point) < _ROUNDING * radius
        other = other._replace(gap=np.where(same & (one.gap < 0.5 * _FAR), _FAR, other.gap))
    result = []
    for one in best:
        lower = other.gap < one.gap
        result.append(_Lowest(*(np.where(lower, new, old) for new, old in zip(other, one, strict=True))))
        other = _Lowest(*(np.where(lower, old, new) for new, old in zip(other, one, strict=True)))
    return tuple(result)
