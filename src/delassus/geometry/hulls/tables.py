"""Hulls as tables for kernels: vertices and faces, read by index in loops.

The size of the code of a kernel does not depend on the numbers of vertices and faces.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import scan
from delassus.geometry.hulls.ground_faces import largest_four, merge_faces
from delassus.geometry.hulls.quickhull import convex_hull
from delassus.geometry.nearest import index_of_smallest

_BLOCK: Final = 64
"""Number of vertices per iteration of a loop, compared in straight-line code; this takes a sixth of the time of a loop
over single vertices."""

_FACE_HEIGHT: Final = 2e-3
"""Largest distance of the corners of a face from its plane, as a fraction of the extent."""


class TableRow(NamedTuple):
    """A row of a constant table (rows, n, …), by its traced index; reads only requested elements."""

    table: Any
    row: Any

    def __len__(self) -> int:
        return int(self.table.shape[1])

    def whole(self) -> Any:
        """The whole row (n, …)."""
        return np.take(self.table, self.row, axis=0)

    def element(self, k: Any) -> Any:
        """The element (…) with a traced index."""
        return np.take(self.table.reshape(-1, *self.table.shape[2:]), self.row * float(len(self)) + k, axis=0)


class Hull(NamedTuple):
    """A convex hull: vertices (n, 3) [m], and for each face its normal (f, 3) and four corners (f, 4, 3).

    Arrays are constant or traced. `normals` and `quads` are None if the faces are not known, and rows of tables if
    several hulls share a table; faces may be repeated, to pad hulls with fewer faces. `summary` (3, 3) has the smallest
    and largest coordinates of the vertices and their mean; None computes them on request.
    """

    vertices: Any
    normals: Any = None
    quads: Any = None
    summary: Any = None

    def support(self, direction: Any) -> Any:
        """The vertex (3,) that is farthest in a direction (3,) in the hull's axes. Cost: 8 operations per vertex."""
        n = len(self.vertices)
        if n <= _BLOCK:
            return np.take(self.vertices, index_of_smallest(self.vertices @ -direction), axis=0)

        def visit(best: tuple[Any, Any], block: Any) -> tuple[tuple[Any, Any], None]:
            vertex = np.take(block, index_of_smallest(block @ -direction), axis=0)
            height = vertex @ direction
            higher = height > best[0]
            return (np.where(higher, height, best[0]), np.where(higher, vertex, best[1])), None

        padding = [self.vertices[:1]] * (-n % _BLOCK)
        blocks = np.concatenate([self.vertices, *padding]).reshape(-1, _BLOCK, 3)
        (_, farthest), _ = scan(visit, (np.array(-numpy.inf), np.array(self.vertices[0])), blocks)
        return farthest

    def bounds(self) -> tuple[Any, Any]:
        """The smallest and the largest coordinates (3,) of the vertices."""
        if self.summary is not None:
            return self.summary[0], self.summary[1]
        if isinstance(self.vertices, numpy.ndarray):
            return self.vertices.min(0), self.vertices.max(0)

        def visit(bounds: tuple[Any, Any], vertex: Any) -> tuple[tuple[Any, Any], None]:
            return (np.minimum(bounds[0], vertex), np.maximum(bounds[1], vertex)), None

        first = np.array(self.vertices[0])
        return scan(visit, (first, first), self.vertices)[0]

    def center(self) -> Any:
        """The mean (3,) of the vertices, which is inside the hull; the center of the bounding box need not be."""
        return np.sum(self.vertices, axis=0) / float(len(self.vertices)) if self.summary is None else self.summary[2]

    def face(self, direction: Any) -> tuple[Any, Any, Any]:
        """The corners (4, 3), normal (3,) and index of the face whose normal is nearest to a direction (3,).

        Without a table of faces, the corners are support points in four directions tilted by a few degrees.
        """
        if self.normals is None:
            return self._supports_of_tilts(direction), direction, np.array(0.0)

        if isinstance(self.normals, TableRow):
            return self._face_of_table(direction)

        def visit(best: tuple[Any, ...], face: tuple[Any, ...]) -> tuple[tuple[Any, ...], None]:
            normal, quad, index = face
            cosine = normal @ direction
            better = cosine > best[0]
            return tuple(np.where(better, x, y) for x, y in zip((cosine, normal, quad, index), best, strict=True)), None

        indices = numpy.arange(float(len(self.normals)))
        none = (np.array(-2.0), np.zeros(3), np.zeros((4, 3)), np.array(0.0))
        (_, normal, quad, index), _ = scan(visit, none, (self.normals, self.quads, indices))
        return quad, normal, index

    def _face_of_table(self, direction: Any) -> tuple[Any, Any, Any]:
        """The face nearest to a direction, read from the table; only the corners of this face are read."""

        def visit(best: tuple[Any, Any], face: tuple[Any, Any]) -> tuple[tuple[Any, Any], None]:
            normal, index = face
            cosine = normal @ direction
            better = cosine > best[0]
            return (np.where(better, cosine, best[0]), np.where(better, index, best[1])), None

        indices = numpy.arange(float(len(self.normals)))
        (_, index), _ = scan(visit, (np.array(-2.0), np.array(0.0)), (self.normals.whole(), indices))
        return self.quads.element(index), self.normals.element(index), index

    def _supports_of_tilts(self, direction: Any) -> Any:
        size = np.abs(direction)
        axis = np.where(size[0] <= np.minimum(size[1], size[2]), numpy.array([1.0, 0.0, 0.0]), 0.0)
        axis = axis + np.where(size[0] <= np.minimum(size[1], size[2]), 0.0, 1.0) * np.where(
            size[1] <= size[2], numpy.array([0.0, 1.0, 0.0]), numpy.array([0.0, 0.0, 1.0])
        )
        u = np.cross(direction, axis)
        u = u / np.sqrt(u @ u)
        w = np.cross(direction, u)
        arms = [u, w, -u, -w]
        return np.stack([self.support(direction + 0.03 * arm) for arm in arms])


def as_hull(size: Any) -> Hull:
    """The hull of vertices (n, 3), with faces if the vertices are known while a kernel is traced; a `Hull` is returned
    unchanged."""
    if isinstance(size, Hull):
        return size
    if isinstance(size, tuple):
        return _constant_hull(size)
    if isinstance(size, numpy.ndarray) and size.dtype == float:
        return _constant_hull(tuple(map(tuple, size.tolist())))
    return Hull(size)


@lru_cache(maxsize=256)
def _constant_hull(vertices: tuple[tuple[float, ...], ...]) -> Hull:
    hull = convex_hull(numpy.array(vertices, float))
    faces = merge_faces(hull, _FACE_HEIGHT * float(numpy.ptp(hull.points, axis=0).max()))
    quads = []
    for normal, members in faces:
        four = largest_four(hull.points, members, normal)
        quads.append(hull.points[[*four, four[-1]][:4]])
    return Hull(hull.points, numpy.array([normal for normal, _ in faces]), numpy.array(quads))
