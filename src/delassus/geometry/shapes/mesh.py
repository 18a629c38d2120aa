"""Meshes, as their convex hulls: size (n, 3), the vertices in the axes of the body.

Tables of faces, where they are known, come with the vertices: a size may be `HullTables`.
"""

from __future__ import annotations

from typing import Any

import numpy

import delassus.numpy as np
from delassus.geometry.hulls.ground_faces import HullTables, hull_tables
from delassus.geometry.hulls.on_plane import POINTS, choose_vertices
from delassus.geometry.hulls.tables import as_hull
from delassus.geometry.shapes.distances import norm
from delassus.geometry.shapes.ground import point_touch
from delassus.geometry.shapes.registry import Array, Core, Facet, Placed, ShapeKind, Touch, register_shape
from delassus.geometry.surfaces import Surface


@register_shape("mesh")
class Mesh(ShapeKind):
    """A mesh touches a plane with the lowest vertex of its hull and with four of the face that lies on the plane."""

    def ground_points(self, size: Any, on_field: bool) -> int:
        """Five on a plane."""
        return len(size) if on_field else POINTS

    def ground_touches(self, body: Placed, surface: Surface, on_field: bool) -> list[Touch]:
        """The lowest vertex, then those of the face; their features are the numbers of vertices."""
        if on_field:
            return [point_touch(surface, body.at(np.array(vertex))) for vertex in body.size]
        height, normal = surface(body.p)
        chosen = choose_vertices(tables_of(body.size), body.R.T @ normal, height)
        return [Touch(gap, body.at(vertex), normal, number) for gap, vertex, number in chosen]

    def support(self, body: Placed, direction: Any) -> Any:
        """A vertex; cost: one scalar product a vertex."""
        return body.at(as_hull(body.size).support(body.R.T @ direction))

    def core(self, body: Placed) -> Core:
        """All of it."""
        low, high = as_hull(body.size).bounds()
        extents = 0.5 * (high - low)
        return Core(body.at(0.5 * (low + high)), extents, 0.0, norm(extents))

    def facet(self, body: Placed, direction: Any) -> Facet:
        """The face whose normal is nearest to the direction."""
        quad, normal, number = as_hull(body.size).face(body.R.T @ direction)
        corners = np.stack([body.at(quad[k]) for k in range(4)])
        edge = corners[2] - corners[0]
        size = norm(edge)
        axis = np.where(size > 0.0, edge / np.where(size > 0.0, size, 1.0), body.R[:, 0])
        return Facet(corners, body.R @ normal, axis, number)

    def positive_lengths(self, size: Any) -> tuple[float, ...]:
        """None: readers check vertices."""
        return ()

    def flat_lengths(self, size: Any) -> tuple[float, ...]:
        """Of the box around it."""
        return tuple(numpy.ptp(numpy.array(size), axis=0).tolist())

    def outline(self, size: Any) -> Array:
        """Its vertices."""
        return numpy.array(size)


def tables_of(size: Any) -> HullTables:
    """The tables of a hull, made of its vertices unless they are given."""
    return size if isinstance(size, HullTables) else hull_tables(tuple(map(tuple, numpy.asarray(size).tolist())))
