"""Contacts of a hull with a plane: the lowest vertex and four vertices of a face.

    lowest = argmin over vertices x of m · x,    face = argmin over the faces around it of m · (outward normal),

where m is the normal of the plane in the axes of the hull. If the lowest vertex belongs to the face, it counts once.

Cost: 6 operations for each vertex, about 200 more, and up to 43 gathers.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.geometry.hulls.ground_faces import HullTables
from delassus.geometry.hulls.tables import Hull
from delassus.geometry.nearest import index_of_smallest

POINTS: Final = 5
"""Number of contacts: the lowest vertex and four vertices of a face."""

FAR: Final = 10.0
"""Gap of unused contacts, as a multiple of the extent of a hull."""


class VertexTouch(NamedTuple):
    """A vertex (3,) [m] of a hull in its own axes, its gap [m], and its index."""

    gap: Any
    vertex: Any
    number: Any


def choose_vertices(hull: HullTables, m: Any, height: Any) -> list[VertexTouch]:
    """The vertices with which a hull touches a plane: first the lowest, then those of the face above the plane.

    Args:
        hull: The tables of the hull.
        m: (3,) the plane's unit normal in the axes of the hull.
        height: The distance [m] of the hull's origin above the plane.
    """
    lowest = index_of_smallest(hull.vertices @ m)
    width = hull.normals.shape[1]
    face = index_of_smallest(np.take(hull.normals, lowest, axis=0) @ m)
    corners = np.take(hull.corners.reshape(-1, POINTS - 1), width * lowest + face, axis=0)
    repeated = np.array(False)
    for k in range(POINTS - 1):
        repeated = repeated | (corners[k] == lowest)
    candidates = [(lowest, repeated)] + [(corners[k], corners[k] < 0.0) for k in range(POINTS - 1)]
    touches = []
    for index, absent in candidates:
        vertex = np.take(hull.vertices, index, axis=0)
        gap = height + vertex @ m
        touches.append(VertexTouch(np.where(absent, np.abs(gap) + FAR * hull.extent, gap), vertex, index))
    return touches


def choose_points(hull: Hull, m: Any, height: Any) -> list[VertexTouch]:
    """Contact points of a hull whose vertices are data of a loop; features are indices of the face and its corner."""
    lowest = hull.support(-m)
    quad, _, face = hull.face(-m)
    repeated, extent = np.array(False), np.max(hull.bounds()[1] - hull.bounds()[0])
    for k in range(POINTS - 1):
        repeated = repeated | np.all(quad[k] == lowest)
    candidates = [(lowest, repeated, np.array(-1.0))]
    for k in range(POINTS - 1):
        is_repeated = np.all(quad[k] == quad[k - 1]) if k else np.array(False)
        candidates.append((quad[k], is_repeated, (POINTS - 1.0) * face + float(k)))
    touches = []
    for vertex, absent, index in candidates:
        gap = height + vertex @ m
        touches.append(VertexTouch(np.where(absent, np.abs(gap) + FAR * extent, gap), vertex, index))
    return touches
