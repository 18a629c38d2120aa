"""Meshes, as their convex hulls: size (n, 3), the vertices in the axes of the body.

Tables of faces, where they are known, come with the vertices: a size may be `HullTables`.
"""

from __future__ import annotations

from typing import Any

import numpy

import delassus.numpy as np
from delassus.geometry.hulls.ground_faces import HullTables, hull_tables
from delassus.geometry.hulls.on_plane import POINTS, choose_vertices
from delassus.geometry.shapes.ground import point_touch
from delassus.geometry.shapes.registry import Array, Placed, ShapeKind, Touch, lengths, register_shape
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
        vertices = lengths(body.size)
        return body.at(np.take(vertices, np.argmax(vertices @ (body.R.T @ direction)), axis=0))

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
