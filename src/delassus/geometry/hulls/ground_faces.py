"""Face tables of a hull for contacts with a plane: four vertices per face.

Triangles that are coplanar within 3° and 2 mm (or 1 % of the hull's diagonal, if that is less) are merged into faces,
the largest first. A face keeps the four vertices that span the largest area. Under small tilts, these and the lowest
vertex of the hull represent nearly all of the true contact patch.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any, Final, NamedTuple

import numpy as np

from delassus.geometry.hulls.quickhull import Array, Hull, Indices, convex_hull

MERGE_COSINE: Final = math.cos(math.radians(3.0))
"""Smallest cosine of the angle between normals of triangles of one face."""

MERGE_HEIGHT: Final = 2e-3
"""Largest distance [m] of the vertices of a face from the plane of its largest triangle."""

_MERGE_SHARE: Final = 0.01
"""Largest distance of the vertices of a face from this plane, as a fraction of the hull's diagonal."""

_MOST_CORNERS: Final = 24
"""Largest number of vertices of a merged face among which the best four are searched: support points in as many
directions of its plane."""


_MOST_FACES: Final = 8
"""Largest number of faces around a vertex in the tables, the largest ones; 99 % of vertices have fewer."""


class HullTables(NamedTuple):
    """The tables of a hull that kernels read; arrays may be traced.

    Attributes:
        vertices: (n, 3) [m].
        normals: (n, d, 3) outward normals of the faces around each vertex; vertices with fewer faces repeat some.
        corners: (n, d, 4) indices of four vertices of each of these faces; -1 if a face has only three.
        extent: The diagonal [m] of the bounding box.
        planes: The planes of all faces: outward normals (m, 3) · x = offsets (m,) [m].
    """

    vertices: Any
    normals: Any
    corners: Any
    extent: Any
    planes: tuple[Any, Any]


@functools.lru_cache(maxsize=512)
def hull_tables(vertices: tuple[tuple[float, float, float], ...]) -> HullTables:
    """The tables of a hull with these vertices."""
    points = np.array(vertices, float)
    extent = float(np.linalg.norm(np.ptp(points, axis=0)))
    hull = convex_hull(points)
    original_indices = [int(np.argmin(np.sum((points - x) ** 2, 1))) for x in hull.points]  # quickhull sorts its points
    faces, faces_of_vertex = [], [[] for _ in points]  # type: ignore[var-annotated]
    for normal, members in merge_faces(hull, min(MERGE_HEIGHT, _MERGE_SHARE * extent)):
        four = [original_indices[k] for k in largest_four(hull.points, members, normal)]
        for k in members.tolist():
            faces_of_vertex[original_indices[k]].append(len(faces))
        faces.append((normal, four + [-1] * (4 - len(four))))
    width = min(max(map(len, faces_of_vertex)), _MOST_FACES)
    selected = [(face_indices * width or [0] * width)[:width] for face_indices in faces_of_vertex]
    normals = np.array([[faces[k][0] for k in face_indices] for face_indices in selected])
    corners = np.array([[faces[k][1] for k in face_indices] for face_indices in selected], float)
    return HullTables(points, normals, corners, extent, _planes(hull))


def _planes(hull: Hull) -> tuple[Array, Array]:
    """Normals (m, 3) and offsets (m,) of the planes of all triangles, each plane once."""
    a, b, c = (hull.points[hull.triangles[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    _, first = np.unique(normals.round(9) + 0.0, axis=0, return_index=True)  # no two planes of a hull are parallel
    first.sort()
    return normals[first], np.sum(normals[first] * a[first], 1)


def merge_faces(hull: Hull, height: float) -> list[tuple[Array, Indices]]:
    """Merge coplanar triangles of a hull into faces: outward normals (3,) and indices of vertices.

    Faces are in descending order of their largest triangle.
    """
    x = hull.points[hull.triangles]
    weighted = 0.5 * np.cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0])
    areas = np.linalg.norm(weighted, axis=1)
    normals = weighted / areas[:, None]
    faces_of_edge: dict[tuple[int, int], list[int]] = {}
    for k, (a, b, c) in enumerate(hull.triangles.tolist()):
        for edge in ((a, b), (b, c), (c, a)):
            faces_of_edge.setdefault(edge, []).append(k)
    free, faces = np.ones(len(areas), bool), []
    for seed in np.argsort(-areas, kind="stable").tolist():
        if not free[seed]:
            continue
        distances = np.abs((x - x[seed, 0]) @ normals[seed]).max(1)
        joins = free & (normals @ normals[seed] >= MERGE_COSINE) & (distances <= height)
        joins[seed] = True
        members, border = {seed}, [seed]
        while border:
            a, b, c = hull.triangles[border.pop()].tolist()
            for edge in ((b, a), (c, b), (a, c)):
                new = [k for k in faces_of_edge.get(edge, ()) if joins[k] and k not in members]
                members.update(new)
                border += new
        rows = sorted(members)
        free[rows] = False
        mean = weighted[rows].sum(0)
        faces.append((mean / np.linalg.norm(mean), np.unique(hull.triangles[rows])))
    return faces


def largest_four(points: Array, members: Indices, normal: Array) -> list[int]:
    """The three or four of a face's vertices that span the largest area, in the order around it."""
    u = np.eye(3)[int(np.argmin(np.abs(normal)))]
    u = np.cross(normal, u)
    u /= np.linalg.norm(u)
    plane = points[members] @ np.stack([u, np.cross(normal, u)], 1)
    if len(members) > _MOST_CORNERS:
        turn = 2.0 * math.pi * np.arange(_MOST_CORNERS) / _MOST_CORNERS
        extremes = np.unique(np.argmax(plane @ np.stack([np.cos(turn), np.sin(turn)]), 0))
        members, plane = members[extremes], plane[extremes]
    arm = plane - plane.mean(0)
    around = np.argsort(np.arctan2(arm[:, 1], arm[:, 0]), kind="stable")
    members, plane = members[around], plane[around]
    if len(members) < 4:
        return [int(k) for k in members]
    fours = np.array(list(itertools.combinations(range(len(members)), 4)))
    a, b, c, d = (plane[fours[:, k]] for k in range(4))
    diagonal, other_diagonal = c - a, d - b
    areas = 0.5 * np.abs(diagonal[:, 0] * other_diagonal[:, 1] - diagonal[:, 1] * other_diagonal[:, 0])
    return [int(k) for k in members[fours[int(np.argmax(areas))]]]
