"""Faces of the convex hull of some vertices, with triangles merged that are coplanar within tolerances.

Computed once, when a scene is built, by Qhull. Vertices in one plane have a hull of two faces, one on each side.
"""

from __future__ import annotations

import importlib
from typing import Any, Final, NamedTuple

import numpy
from numpy.typing import NDArray

from delassus.errors import BadArgument, DelassusError

Array = NDArray[numpy.float64]
Ints = NDArray[numpy.int64]

_FLAT: Final = 1e-9
"""Of the extent: vertices whose thickness is less are in one plane."""


class Face(NamedTuple):
    """A face of a hull: its outward normal (3,), the offset n · x [m] of its supporting plane, and the numbers of its
    corners, counterclockwise from outside."""

    normal: Array
    offset: float
    corners: tuple[int, ...]


def hull_faces(vertices: Any, angle: float = 1e-6, distance: float = 1e-9) -> tuple[Face, ...]:
    """The faces of the convex hull of vertices (n, 3) [m], the largest first.

    A triangle belongs to a face if its normal differs from that of the face's largest triangle by at most `angle`
    [rad], and its corners from that plane by at most `distance`, as a share of the extent of the vertices.

    Cost: that of Qhull, and one pass over its triangles for each face.
    """
    x = _checked(vertices)
    extent = float(numpy.ptp(x, axis=0).max())
    center = x.mean(0)
    axes = numpy.linalg.svd(x - center, full_matrices=False)[2]
    thickness = numpy.ptp((x - center) @ axes.T, axis=0)
    if thickness[1] <= _FLAT * extent:
        raise BadArgument(
            f"{len(x)} vertices with an extent of {extent:g} m are in one point or line; a hull has at least three "
            "that are not. Correct the mesh.",
            code="bad-mesh",
        )
    if thickness[2] <= _FLAT * extent:
        return _flat_faces(x, axes[2])
    hull = _qhull(x)
    normals, areas = hull.equations[:, :3], _areas(x, hull.simplices)
    free = numpy.ones(len(normals), bool)
    faces: list[tuple[float, Face]] = []
    for seed in numpy.argsort(-areas, kind="stable"):
        if not free[seed]:
            continue
        members = _coplanar(hull, int(seed), free, x, numpy.cos(angle), distance * extent)
        free[members] = False
        n = numpy.sum(normals[members] * areas[members, None], 0)
        n = n / numpy.linalg.norm(n)
        corners = _outline(x, numpy.unique(hull.simplices[members]), n)
        faces.append((float(areas[members].sum()), Face(n, float((x @ n).max()), corners)))
    faces.sort(key=lambda entry: -entry[0])
    return tuple(face for _, face in faces)


def quad_corners(vertices: Any, corners: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Four corners of a face whose quadrilateral has the largest area, in order; a triangle repeats its last one."""
    x = numpy.asarray(vertices, float)[list(corners)]
    n = len(corners)
    if n == 3:
        return corners[0], corners[1], corners[2], corners[2]
    i, j = numpy.triu_indices(n, 1)
    arms = x[j] - x[i]
    # A quadrilateral i < a < j < b is two triangles on its diagonal (i, j), each with the corner farthest from it.
    sides = numpy.linalg.norm(numpy.cross(arms[:, None, :], x[None, :, :] - x[i][:, None, :]), axis=-1)
    k = numpy.arange(n)
    between = (k > i[:, None]) & (k < j[:, None])
    a, b = numpy.where(between, sides, -1.0), numpy.where(between, -1.0, sides)
    best = int(numpy.argmax(numpy.maximum(a.max(1), 0.0) + numpy.maximum(b.max(1), 0.0)))
    numbers = sorted((int(i[best]), int(a[best].argmax()), int(j[best]), int(b[best].argmax())))
    quad = [corners[number] for number in numbers]
    return quad[0], quad[1], quad[2], quad[3]


def hull_edges(faces: tuple[Face, ...]) -> Ints:
    """(e, 4): of each edge of a hull its two corners and the two faces beside it, by their numbers."""
    sides: dict[tuple[int, int], list[int]] = {}
    for k, face in enumerate(faces):
        for i, j in zip(face.corners, (*face.corners[1:], face.corners[0]), strict=True):
            sides.setdefault((min(i, j), max(i, j)), []).append(k)
    return numpy.array([(*edge, beside[0], beside[-1]) for edge, beside in sides.items()], numpy.int64).reshape(-1, 4)


def _checked(vertices: Any) -> Array:
    x = numpy.asarray(vertices, float)
    if x.ndim != 2 or x.shape[1] != 3 or len(x) < 3:
        raise BadArgument(
            f"vertices of a hull have the shape {x.shape}; they need (n, 3) with n of 3 or more. Correct the mesh.",
            code="bad-mesh",
        )
    if not numpy.all(numpy.isfinite(x)):
        raise BadArgument("a vertex of a hull is not finite. Correct the mesh.", code="bad-mesh")
    return x


def _qhull(x: Array, options: str = "Qt") -> Any:
    try:
        spatial = importlib.import_module("scipy.spatial")
    except ImportError as error:
        raise DelassusError(
            f"faces of a hull are computed with the package scipy, which cannot be imported ({error}): "
            "pip install 'delassus[particles]'.",
            code="missing-package",
        ) from error
    try:
        return spatial.ConvexHull(x, qhull_options=options)
    except spatial.QhullError as error:
        raise BadArgument(
            f"Qhull finds no convex hull of {len(x)} vertices ({str(error).splitlines()[0]}). Correct the mesh.",
            code="bad-mesh",
        ) from error


def _areas(x: Array, triangles: Ints) -> Array:
    a, b, c = (x[triangles[:, k]] for k in range(3))
    return 0.5 * numpy.linalg.norm(numpy.cross(b - a, c - a), axis=-1)


def _coplanar(hull: Any, seed: int, free: NDArray[numpy.bool_], x: Array, cosine: float, distance: float) -> list[int]:
    """The triangles that are connected to `seed` within its plane, and in no other face yet."""
    normal, offset = hull.equations[seed, :3], hull.equations[seed, 3]
    members, queue = {seed}, [seed]
    while queue:
        for neighbour in hull.neighbors[queue.pop()].tolist():
            if neighbour in members or not free[neighbour]:
                continue
            heights = x[hull.simplices[neighbour]] @ normal + offset
            if hull.equations[neighbour, :3] @ normal >= cosine and numpy.abs(heights).max() <= distance:
                members.add(neighbour)
                queue.append(neighbour)
    return sorted(members)


def _outline(x: Array, numbers: Ints, normal: Array) -> tuple[int, ...]:
    """Of vertices in one plane those on its convex outline, counterclockwise seen against the normal."""
    if len(numbers) == 3:
        a, b, c = x[numbers]
        turn = numpy.cross(b - a, c - a) @ normal > 0.0
        return tuple(numbers.tolist()) if turn else tuple(numbers[[0, 2, 1]].tolist())
    u = numpy.linalg.svd(normal[None, :])[2][1]
    w = numpy.cross(normal, u)
    flat = _qhull(x[numbers] @ numpy.stack([u, w], 1), "")
    return tuple(numbers[flat.vertices].tolist())


def _flat_faces(x: Array, normal: Array) -> tuple[Face, ...]:
    """Both sides of a hull without thickness."""
    corners = _outline(x, numpy.arange(len(x)), normal)
    return tuple(
        Face(n, float((x @ n).max()), order) for n, order in ((normal, corners), (-normal, tuple(reversed(corners))))
    )
