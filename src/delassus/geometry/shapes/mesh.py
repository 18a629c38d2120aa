"""Meshes, as their convex hulls: size (n, 3), the vertices in the axes of the body.

In a loop over hulls, the size is a `Hull` with traced tables of faces.
"""

from __future__ import annotations

from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import map as map_stacks
from delassus.compiler.tracing.flow.control import scan
from delassus.geometry.fields import HeightField
from delassus.geometry.hulls.ground_faces import HullTables, hull_tables
from delassus.geometry.hulls.plane_contacts import POINTS, choose_points, choose_vertices
from delassus.geometry.hulls.tables import Hull, as_hull
from delassus.geometry.shapes.distances import UPWARD, norm
from delassus.geometry.shapes.registry import Array, Core, Facet, Placed, ShapeKind, Touch, register_shape
from delassus.geometry.shapes.terrain import (
    TERRAIN_POINTS,
    ConvexBody,
    Distance,
    convex_touches,
    vertex_touches,
)
from delassus.geometry.surfaces import Surface

_OMITTED: Final = 1e6
"""Depth added to faces that face upward, as a multiple of the hull's extent, so that they are not selected."""


@register_shape("mesh")
class Mesh(ShapeKind):
    """The convex hull of a mesh; it touches a plane with its lowest vertex and with four vertices of a face."""

    def ground_points(self, size: Any, on_field: bool) -> int:
        """Five contacts with a plane, plus those with vertices and edges of a height field."""
        return POINTS + (TERRAIN_POINTS if on_field else 0)

    def ground_touches(self, body: Placed, surface: Surface, on_field: bool) -> list[Touch]:
        """The contacts of the lowest vertex, then those of a face; features are indices of vertices."""
        if isinstance(body.size, Hull):
            height, normal = surface(body.p)
            selected = choose_points(body.size, body.R.T @ normal, height)
            return [Touch(gap, body.at(vertex), normal, index) for gap, vertex, index in selected]
        hull = tables_of(body.size)
        if isinstance(surface, HeightField):
            touches = vertex_touches(surface, hull.vertices, body.at, body.p)
        else:
            height, normal = surface(body.p)
            selected = choose_vertices(hull, body.R.T @ normal, height)
            touches = [Touch(gap, body.at(vertex), normal, index) for gap, vertex, index in selected]
        if not on_field:
            return touches
        middle = 0.5 * (hull.vertices.min(0) + hull.vertices.max(0))
        radius = float(numpy.linalg.norm(hull.vertices - middle, axis=1).max())
        lowest, _ = scan(
            lambda low, x: (np.minimum(low, body.R[2] @ x), None), np.array(radius), hull.vertices - middle
        )
        center = body.at(middle)
        terrain = ConvexBody(_distance_of_terrain(body, hull), center, radius, center[2] + lowest)
        return touches + convex_touches(surface, terrain)

    def support(self, body: Placed, direction: Any) -> Any:
        """The support point, a vertex. Cost: one scalar product for each vertex."""
        return body.at(as_hull(body.size).support(body.R.T @ direction))

    def core(self, body: Placed) -> Core:
        """The core is the whole hull."""
        hull = as_hull(body.size)
        low, high = hull.bounds()
        extents = 0.5 * (high - low)
        return Core(body.at(hull.center()), extents, 0.0, norm(extents))

    def facet(self, body: Placed, direction: Any) -> Facet:
        """The face whose normal is nearest to the direction."""
        quad, normal, index = as_hull(body.size).face(body.R.T @ direction)
        corners = np.stack([body.at(quad[k]) for k in range(4)])
        edge = corners[2] - corners[0]
        size = norm(edge)
        axis = np.where(size > 0.0, edge / np.where(size > 0.0, size, 1.0), body.R[:, 0])
        return Facet(corners, body.R @ normal, axis, index)

    def positive_lengths(self, size: Any) -> tuple[float, ...]:
        """No lengths, since readers check vertices."""
        return ()

    def outline(self, size: Any) -> Array:
        """The points that are drawn: the vertices."""
        return numpy.array(size)


def _distance_of_terrain(body: Placed, hull: HullTables) -> Distance:
    """The distance of a point of the terrain from a hull: its largest height above faces.

    For points inside, faces that face upward are omitted. Outside, near edges and vertices, the Euclidean distance is
    larger; both are zero on the surface.
    """
    normals, offsets = hull.planes
    raised = map_stacks(lambda n: np.where(body.R[2] @ n > UPWARD, _OMITTED * hull.extent, 0.0), normals)

    def distance(x: Any) -> tuple[Any, Any]:
        local = body.R.T @ (x - body.p)

        def visit(best: tuple[Any, ...], face: tuple[Any, ...]) -> tuple[tuple[Any, ...], None]:
            highest, outward, depth, exit_normal = best
            normal, offset, above = face
            height = normal @ local - offset
            higher, deeper = height > highest, height - above > depth
            return (
                np.where(higher, height, highest),
                np.where(higher, normal, outward),
                np.where(deeper, height - above, depth),
                np.where(deeper, normal, exit_normal),
            ), None

        none = (np.array(-numpy.inf), np.zeros(3), np.array(-numpy.inf), np.zeros(3))
        (gap, normal, depth, exit_normal), _ = scan(visit, none, (normals, offsets, raised))
        inside = gap < 0.0
        return np.where(inside, depth, gap), body.R @ np.where(inside, exit_normal, normal)

    return distance


def tables_of(size: Any) -> HullTables:
    """The tables of a hull with known vertices (n, 3)."""
    return hull_tables(tuple(map(tuple, numpy.asarray(size).tolist())))
