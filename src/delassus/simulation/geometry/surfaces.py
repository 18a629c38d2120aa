"""The ground as kernels see it: how far a point is above it, and in which direction.

A plane holds all points x with normal · x = height. A height field has heights on a grid, rows along x and columns
along y, bilinear between its points and continued flat beyond its edges. Its distance is that to the tangent plane
under the point: exact on planes, and right to first order where the ground is curved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import delassus.numpy as np

Surface = Callable[[Any], tuple[Any, Any]]
"""The distance [m] of a point (3,) above the ground, negative below it, and the ground's normal (3,) there."""


@dataclass(frozen=True)
class Field:
    """The grid of a height field: its numbers of points, their spacing [m], and where the first of them is [m]."""

    rows: int
    columns: int
    spacing: float
    origin: tuple[float, float]


def plane_surface(normal: Any, height: Any) -> Surface:
    """A plane with a unit normal (3,)."""
    return lambda x: (normal @ x - height, normal)


def field_surface(field: Field, heights: Any) -> Surface:
    """A height field; `heights` (rows, columns) [m]."""

    def surface(x: Any) -> tuple[Any, Any]:
        i, s, inside_x = _cell((x[0] - field.origin[0]) / field.spacing, field.rows)
        j, t, inside_y = _cell((x[1] - field.origin[1]) / field.spacing, field.columns)
        at = i * float(field.columns) + j
        shifts = (0.0, 1.0, float(field.columns), float(field.columns) + 1.0)
        a, b, c, d = (np.take(heights, at + shift) for shift in shifts)
        height = (a * (1.0 - t) + b * t) * (1.0 - s) + (c * (1.0 - t) + d * t) * s
        along_x = np.where(inside_x, (c - a) * (1.0 - t) + (d - b) * t, 0.0) / field.spacing
        along_y = np.where(inside_y, (b - a) * (1.0 - s) + (d - c) * s, 0.0) / field.spacing
        up = 1.0 / np.sqrt(1.0 + along_x * along_x + along_y * along_y)
        return (x[2] - height) * up, np.stack([-along_x * up, -along_y * up, up])

    return surface


def _cell(place: Any, count: int) -> tuple[Any, Any, Any]:
    """The cell of a place on an axis of the grid, where in it, from 0 to 1, and whether it is on the grid at all."""
    cell = np.clip(np.floor(place), 0.0, float(count - 2))
    share = place - cell
    return cell, np.clip(share, 0.0, 1.0), (share >= 0.0) & (share <= 1.0)
