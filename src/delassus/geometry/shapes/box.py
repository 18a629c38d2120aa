"""Boxes: size (x, y, z), the lengths of their edges."""

from __future__ import annotations

from typing import Any

import numpy

import delassus.numpy as np
from delassus.geometry.shapes.distances import distance_from_below, distance_from_sides, norm
from delassus.geometry.shapes.ground import point_touch
from delassus.geometry.shapes.registry import Array, Core, Facet, Placed, ShapeKind, Touch, lengths, register_shape
from delassus.geometry.shapes.terrain import TERRAIN_POINTS, ConvexBody, convex_touches
from delassus.geometry.surfaces import Surface


@register_shape("box")
class Box(ShapeKind):
    """A box; it touches the ground with its corners, and a height field also with its faces and edges."""

    has_distance = True
    lengths = 3

    def ground_points(self, size: Any, on_field: bool) -> int:
        """The number of corners, plus the contacts with vertices and edges of a height field."""
        return 8 + (TERRAIN_POINTS if on_field else 0)

    def ground_touches(self, body: Placed, surface: Surface, on_field: bool) -> list[Touch]:
        """The contacts of the corners, then those with vertices and edges of a height field."""
        touches = [point_touch(surface, body.at(np.array(corner))) for corner in corners(body.size)]
        if not on_field:
            return touches
        halves = 0.5 * numpy.array(body.size)
        lowest = body.p[2] - np.abs(body.R[2]) @ halves
        terrain = ConvexBody(lambda x: _distance_of_terrain(body, x), body.p, float(numpy.linalg.norm(halves)), lowest)
        return touches + convex_touches(surface, terrain)

    def distance(self, body: Placed, x: Any) -> tuple[Any, Any]:
        """The distance from the nearest point of a face, edge or corner; inside, from the nearest face."""
        local = body.R.T @ (x - body.p)
        side = np.where(local < 0.0, -1.0, 1.0)
        return distance_from_sides(np.abs(local) - 0.5 * lengths(body.size), [side[k] * body.R[:, k] for k in range(3)])

    def support(self, body: Placed, direction: Any) -> Any:
        """The support point in a direction: a corner."""
        return body.at(np.where(body.R.T @ direction < 0.0, -0.5, 0.5) * lengths(body.size))

    def core(self, body: Placed) -> Core:
        """The core is the whole box."""
        halves = 0.5 * lengths(body.size)
        return Core(body.p, halves, 0.0, norm(halves))

    def facet(self, body: Placed, direction: Any) -> Facet:
        """The face whose normal is nearest to the direction; the first, if several are."""
        halves, along = 0.5 * lengths(body.size), body.R.T @ direction
        size = np.abs(along)
        x = (size[0] >= size[1]) & (size[0] >= size[2])
        y = ~x & (size[1] >= size[2])
        side = np.where(np.where(x, along[0], np.where(y, along[1], along[2])) < 0.0, -1.0, 1.0)

        def pick(k: int) -> tuple[Any, Any]:
            a, b, c = (k % 3, (k + 1) % 3, (k + 2) % 3)
            axis = np.where(x, body.R[:, a], np.where(y, body.R[:, b], body.R[:, c]))
            return axis, np.where(x, halves[a], np.where(y, halves[b], halves[c])) * axis

        normal, arm = pick(0)
        axis, u = pick(1)
        w = pick(2)[1]
        middle = body.p + side * arm
        corners = np.stack([middle + a * u + b * w for a, b in ((1, 1), (-1, 1), (-1, -1), (1, -1))])
        index = np.where(x, 0.0, np.where(y, 2.0, 4.0)) + np.where(side > 0.0, 0.0, 1.0)
        return Facet(corners, side * normal, axis, index)

    def outline(self, size: Any) -> Array:
        """The points that are drawn: the corners."""
        return corners(size)

    def faces(self, size: Any) -> Array:
        """The corners (6, 4, 3) of the six faces."""
        polygons = []
        for axis in range(3):
            n, u, w = (numpy.eye(3)[(axis + k) % 3] for k in range(3))
            for side in (1.0, -1.0):
                polygons.append([side * n + a * u + b * side * w for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))])
        return 0.5 * numpy.array(polygons) * numpy.asarray(size)


def _distance_of_terrain(body: Placed, x: Any) -> tuple[Any, Any]:
    """The distance of a point of the terrain from a box; inside, faces that face upward are omitted."""
    local, halves = body.R.T @ (x - body.p), 0.5 * lengths(body.size)
    side = np.where(local < 0.0, -1.0, 1.0)
    return distance_from_below(np.abs(local) - halves, side, body.R[2], halves, [body.R[:, k] for k in range(3)])


def corners(size: Any) -> Any:
    """The corners (8, 3) [m] of a box."""
    signs = numpy.array(numpy.meshgrid(*[(0.5, -0.5)] * 3, indexing="ij")).reshape(3, 8).T
    return signs * lengths(size)
