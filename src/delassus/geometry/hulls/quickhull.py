"""Convex hulls of points by Quickhull, complete or simplified to an error bound.

Quickhull (Barber, Dobkin, Huhdanpaa 1996) with a greedy order: a polytope grows by the point that is highest above one
of its faces, which is the support point in the direction of the normal n of that face,

    x⁺ = argmax over points x and faces (n, d) of n · x - d

New faces through x⁺ replace the faces below it. The height is the error of the support function in that direction. The
selection ends when the Hausdorff distance, the largest distance of a point from the polytope, is below a bound, or at a
maximum number of points. The polytope is within the hull, and its vertices are vertices of the hull. The corners of
large flat sides normal to an axis, such as soles, are selected first, so that these sides stay flat.

Cost: for each selected point, the heights of the remaining points above about six new faces; points inside are dropped.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

RESOLUTION: Final = 1e-7
"""Distance outside the hull, as a fraction of the extent of all points, up to which points count as inside; STL files
have float32 coordinates."""

_FLAT: Final = 1e-4
"""Distance of points from the plane of a flat side, as a fraction of the extent of all points."""

_LARGE: Final = 0.05
"""Smallest area of a flat side that stays flat, as a fraction of the bounding rectangle of all points along its
normal."""

_ROUNDING: Final = 1e-13
"""Height of a selected point above a face, as a fraction of the extent, above which the face is replaced: otherwise the
polytope would be concave."""


class Hull(NamedTuple):
    """A convex polytope.

    Attributes:
        points: (n, 3) its vertices [m].
        triangles: (m, 3) indices of vertices, counterclockwise from outside; a flat hull has triangles on both sides.
        error: The Hausdorff distance [m] to the complete hull.
    """

    points: Array
    triangles: Indices
    error: float


class _Faces(NamedTuple):
    """Triangles (m, 3) of a polytope with their planes, normals (m, 3) · x = offsets (m,)."""

    corners: Indices
    normals: Array
    offsets: Array

    @classmethod
    def through(cls, points: Array, corners: Indices) -> _Faces:
        a, b, c = (points[corners[:, k]] for k in range(3))
        normals = np.cross(b - a, c - a)
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        return cls(corners, normals, np.sum(normals * a, 1))

    def heights(self, x: Array) -> Array:
        """The heights (points, faces) [m] of points above the planes of faces."""
        return x @ self.normals.T - self.offsets


def convex_hull(points: Array, bound: float = 0.0, most: int | None = None) -> Hull:
    """The convex hull of points (n, 3) [m] that are not collinear, simplified to an error `bound` [m].

    Args:
        points: (n, 3) finite points [m].
        bound: The largest allowed Hausdorff distance [m]; 0 for all vertices.
        most: The largest number of vertices, at least 4; the error is larger than `bound` if they do not suffice.
    """
    points = np.unique(np.asarray(points, float), axis=0)
    extent = float(np.linalg.norm(np.ptp(points, axis=0)))
    seed, is_flat = _seed(points, RESOLUTION * extent)
    limit, bound = len(points) if most is None else most, max(bound, RESOLUTION * extent)
    return _flat_hull(points, seed, bound, limit) if is_flat else _solid_hull(points, seed, bound, limit, extent)


def _seed(points: Array, resolution: float) -> tuple[Indices, bool]:
    """The indices (4,) of a positively oriented tetrahedron and False, or (3,) and True if all points are coplanar."""
    axis = int(np.argmax(np.ptp(points, axis=0)))
    first = int(np.argmin(points[:, axis]))
    second = int(np.argmax(np.linalg.norm(points - points[first], axis=1)))
    along = points[second] - points[first]
    across = np.cross(points - points[first], along / np.linalg.norm(along))
    third = int(np.argmax(np.linalg.norm(across, axis=1)))
    normal = np.cross(along, points[third] - points[first])
    height = (points - points[first]) @ (normal / np.linalg.norm(normal))
    fourth = int(np.argmax(np.abs(height)))
    if abs(height[fourth]) <= 10.0 * resolution:
        return np.array([first, second, third]), True
    second, third = (third, second) if height[fourth] > 0.0 else (second, third)
    return np.array([first, second, third, fourth]), False


# --- solid hulls ------------------------------------------------------------------------------------------------------


def _solid_hull(points: Array, seed: Indices, bound: float, max_vertices: int, extent: float) -> Hull:
    a, b, c, d = seed.tolist()
    faces = _Faces.through(points, np.array([(a, b, c), (a, c, d), (a, d, b), (b, d, c)]))
    remaining = np.setdiff1d(np.arange(len(points)), seed)
    heights = faces.heights(points[remaining])
    vertices, error, sides = len(seed), 0.0, _flat_sides(points, extent)
    while len(remaining):
        outside = np.any(heights > RESOLUTION * extent, axis=1)
        remaining, heights = remaining[outside], heights[outside]
        if not len(remaining):
            break
        sides = [k for k in sides if k in remaining]
        row, face = divmod(int(np.argmax(heights)), heights.shape[1])
        if sides and vertices < max_vertices:
            row = int(np.searchsorted(remaining, sides[0]))
            face = int(np.argmax(heights[row]))
        elif heights[row, face] <= bound or vertices >= max_vertices:
            distances = _distances(points[remaining], heights, points[faces.corners])
            row = int(np.argmax(distances))
            error = float(distances[row])
            if error <= bound or vertices >= max_vertices:
                break
            face = int(np.argmax(heights[row]))
        extension = _with_point(faces, heights[row], face, int(remaining[row]), _ROUNDING * extent)
        if extension is not None:
            remaining_faces, corners = extension
            added = _Faces.through(points, corners)
            faces = _Faces(
                *(np.concatenate([old[remaining_faces], new]) for old, new in zip(faces, added, strict=True))
            )
            heights = np.concatenate([heights[:, remaining_faces], added.heights(points[remaining])], axis=1)
            vertices += 1
        remaining, heights = np.delete(remaining, row), np.delete(heights, row, axis=0)
    vertex_indices = np.unique(faces.corners)  # by rounding, later vertices may have covered one
    return Hull(points[vertex_indices], np.searchsorted(vertex_indices, faces.corners), error)


def _flat_sides(points: Array, extent: float) -> list[int]:
    """Four corners of each large flat side normal to an axis: its farthest points along the diagonals."""
    corners: dict[int, None] = {}
    directions = np.array([(0.7, -0.7, -0.7, 0.7), (0.71, 0.71, -0.71, -0.71)])  # counterclockwise
    for axis in range(3):
        plane = np.delete(points, axis, axis=1)
        for height in (points[:, axis], -points[:, axis]):
            side = np.flatnonzero(height >= height.max() - _FLAT * extent)
            extremes = side[np.argmax(plane[side] @ directions, axis=0)]
            x, y = plane[extremes].T
            area = 0.5 * abs(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))
            if area > _LARGE * np.prod(np.ptp(plane, axis=0)):
                corners |= dict.fromkeys(extremes.tolist())
    return list(corners)


def _with_point(faces: _Faces, heights: Array, face: int, point: int, rounding: float) -> tuple[Any, Indices] | None:
    """Add a point above `face`: return the remaining faces and the corners of new ones.

    `heights` are those of the point above all faces. The result is None if rounding leaves no closed surface; then the
    point is nearly in the planes of several faces and is omitted.
    """
    face_of_edge: dict[tuple[int, int], int] = {}
    for k, (a, b, c) in enumerate(faces.corners.tolist()):
        face_of_edge |= {(a, b): k, (b, c): k, (c, a): k}
    visible, border, horizon = {face}, [face], []
    while border:
        a, b, c = faces.corners[border.pop()].tolist()
        for edge in ((a, b), (b, c), (c, a)):
            neighbor = face_of_edge[edge[::-1]]
            if neighbor not in visible and heights[neighbor] > rounding:
                visible.add(neighbor)
                border.append(neighbor)
    for k in visible:
        a, b, c = faces.corners[k].tolist()
        horizon += [edge for edge in ((a, b), (b, c), (c, a)) if face_of_edge[edge[::-1]] not in visible]
    starts = [edge[0] for edge in horizon]
    if len(set(starts)) != len(starts) or not _is_one_loop(dict(horizon)):
        return None
    remaining = np.array([k for k in range(len(faces.corners)) if k not in visible], int)
    return remaining, np.array([(a, b, point) for a, b in horizon])


def _is_one_loop(successors: dict[int, int]) -> bool:
    """Whether the edges from each vertex to the following one form a single closed polygon."""
    start = at = next(iter(successors))
    for count in range(1, len(successors) + 1):
        at = successors.get(at, -1)
        if at == start:
            return count == len(successors)
    return False


def _distances(x: Array, heights: Array, triangles: Array) -> Array:
    """Distances (n,) of points (n, 3) outside of a polytope to its triangles (m, 3, 3).

    Only faces below a point are examined, since the nearest point is on one of them.
    """
    rows, columns = np.nonzero(heights > 0.0)
    nearest = _distances_to_triangles(x[rows], triangles[columns])
    distances = np.full(len(x), np.inf)
    np.minimum.at(distances, rows, nearest)
    return distances


def _distances_to_triangles(x: Array, triangles: Array) -> Array:
    """Distances (n,) of points (n, 3) from one triangle (n, 3, 3) each: from its plane if the foot is inside the
    triangle, else from its edges."""
    a, b, c = (triangles[:, k] for k in range(3))
    normal = np.cross(b - a, c - a)
    height = np.einsum("ij,ij->i", x - a, normal) / np.linalg.norm(normal, axis=1)
    inside, nearest = np.ones(len(x), bool), np.full(len(x), np.inf)
    for start, end in ((a, b), (b, c), (c, a)):
        along, arm = end - start, x - start
        inside &= np.einsum("ij,ij->i", np.cross(normal, along), arm) >= 0.0
        fraction = np.clip(np.einsum("ij,ij->i", along, arm) / np.einsum("ij,ij->i", along, along), 0.0, 1.0)
        nearest = np.minimum(nearest, np.linalg.norm(arm - fraction[:, None] * along, axis=1))
    return np.where(inside, np.abs(height), nearest)


# --- flat hulls -------------------------------------------------------------------------------------------------------


def _flat_hull(points: Array, seed: Indices, bound: float, max_vertices: int) -> Hull:
    """The hull of coplanar points: a polygon grows by the point that is farthest beyond one of its edges."""
    a, b, c = points[seed]
    along = (b - a) / np.linalg.norm(b - a)
    normal = np.cross(b - a, c - a)
    across = np.cross(normal / np.linalg.norm(normal), along)
    x = (points - a) @ np.stack([along, across], 1)
    loop, error = seed.tolist(), 0.0
    while True:
        start, end = x[loop], x[loop[1:] + loop[:1]]
        direction = (end - start) / np.linalg.norm(end - start, axis=1, keepdims=True)
        outward = np.stack([direction[:, 1], -direction[:, 0]], 1)
        beyond = x @ outward.T - np.sum(outward * start, 1)
        nearest = np.where(beyond > 0.0, _distances_to_edges(x, start, end), np.inf).min(1)
        error = float(np.where(np.isfinite(nearest), nearest, 0.0).max())
        if error <= bound or len(loop) >= max_vertices:
            break
        point, edge = np.unravel_index(int(np.argmax(beyond)), beyond.shape)
        loop.insert(int(edge) + 1, int(point))
    fan = np.array([(0, k, k + 1) for k in range(1, len(loop) - 1)])
    return Hull(points[loop], np.concatenate([fan, fan[:, ::-1]]), error)


def _distances_to_edges(x: Array, start: Array, end: Array) -> Array:
    """Distances (points, edges) of points (n, 2) in a plane from edges."""
    along, arm = end - start, x[:, None] - start
    fraction = np.clip(np.sum(arm * along, -1) / np.sum(along * along, -1), 0.0, 1.0)
    return np.asarray(np.linalg.norm(arm - fraction[..., None] * along, axis=-1))
