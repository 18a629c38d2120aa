"""Vertices of meshes, as far as the ground can touch them: those of the convex hull, or some forty of them.

STL (binary or text) and OBJ files are read. A support point is the vertex that is furthest in a direction; directions
are spread evenly over the sphere, so every part of the hull has some.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.errors import BadArgument
from delassus.model.parts import Geometry
from delassus.model.placement import Vector

DIRECTIONS = 42

MAX_COORDINATE = 1e9
"""Of vertices [m]: products of lengths and masses stay far from overflow."""

MAX_MESH_BYTES = 512 * 2**20
"""Of a file that a model refers to: a mesh, a texture, a height field."""


class MeshError(BadArgument):
    """A mesh that cannot be read."""

    code = "bad-mesh"


def hull_points(geometry: Geometry) -> tuple[Vector, ...]:
    """Some support points of a mesh [m], in the frame of the shape."""
    where = f"the mesh of the shape {geometry.name!r}"
    path = Path(geometry.mesh)
    if not geometry.mesh or not path.is_file():
        raise MeshError(
            f"{where} is not there: {geometry.mesh or 'its file is not known'!r}. Give its folder to load by "
            "packages=, or leave the shape out by touching=.",
            code="missing-file",
        )
    with np.errstate(over="ignore", invalid="ignore"):
        vertices = _vertices(path, where) * np.array(geometry.size or (1.0, 1.0, 1.0))
    if len(vertices) < 1 or not np.all(np.isfinite(vertices)):
        raise MeshError(f"{where}, {path}, has no vertices, or some that are not finite.", code="bad-mesh")
    furthest = np.abs(vertices).max()
    if furthest > MAX_COORDINATE:
        raise MeshError(
            f"{where}, {path}, has a vertex at {furthest:.3g} m; coordinates are at most {MAX_COORDINATE:g} m. Correct "
            "the file or its scale, or leave the shape out by touching=.",
            code="bad-mesh",
        )
    if not _spans_a_triangle(vertices):
        raise MeshError(
            f"{where}, {path}, has all of its vertices in one point or line; a mesh has at "
            "least three that are not. Correct the file, or leave the shape out by touching=.",
            code="bad-mesh",
        )
    return support_points(vertices)


def _spans_a_triangle(vertices: NDArray[np.float64]) -> bool:
    """Whether vertices (n, 3) are not all in one point or line, to 1e-9 of their extent."""
    arms = vertices - vertices[0]
    longest = arms[np.argmax(np.sum(arms * arms, -1))]
    size = float(np.linalg.norm(longest))
    if size == 0.0:
        return False
    return bool(np.linalg.norm(np.cross(arms, longest / size), axis=-1).max() > 1e-9 * size)


def support_points(vertices: NDArray[np.float64], directions: int = DIRECTIONS) -> tuple[Vector, ...]:
    """The vertices that are furthest in directions that a spiral spreads over the sphere, and along the axes."""
    k = np.arange(directions) + 0.5
    z, turn = 1.0 - 2.0 * k / directions, math.pi * (1.0 + math.sqrt(5.0)) * k
    r = np.sqrt(1.0 - z * z)
    spread = np.stack([r * np.cos(turn), r * np.sin(turn), z], 1)
    every = np.concatenate([np.eye(3), -np.eye(3), spread])
    chosen = sorted(set(np.argmax(vertices @ every.T, 0).tolist()))
    points: dict[Any, None] = dict.fromkeys(tuple(vertices[i].tolist()) for i in chosen)
    return tuple(points)


def hull_triangles(points: tuple[Vector, ...]) -> NDArray[np.float64]:
    """(n, 3, 3) triangles of a few points that have all others on one side, corners against the clock from outside."""
    x = np.array(points)
    i, j, k = np.array([*itertools.combinations(range(len(x)), 3)], int).reshape(-1, 3).T
    normal = np.cross(x[j] - x[i], x[k] - x[i])
    above = normal @ x.T - np.sum(normal * x[i], -1)[:, None]
    slack = 1e-9 * np.ptp(x, axis=0).max() * np.linalg.norm(normal, axis=-1)[:, None]
    outside, inside = np.all(above <= slack, -1), np.all(above >= -slack, -1)
    flat = np.linalg.norm(normal, axis=-1) <= 1e-12 * np.ptp(x, axis=0).max() ** 2
    outward, inward = outside & ~flat, inside & ~outside & ~flat
    faces = np.concatenate([np.stack([i, j, k], -1)[outward], np.stack([i, k, j], -1)[inward]])
    return x[faces]


def _vertices(path: Path, where: str) -> NDArray[np.float64]:
    kind, size = path.suffix.lower(), path.stat().st_size
    if size > MAX_MESH_BYTES:
        most = MAX_MESH_BYTES // 2**20
        raise MeshError(
            f"{where}, {path}, has {size / 2**20:.0f} MB; meshes are read up to {most} MB.", code="bad-mesh"
        )
    try:
        data = path.read_bytes()
        if kind == ".stl":
            return _stl(data)
        if kind == ".obj":
            lines = (line.split() for line in data.decode("utf-8", "replace").splitlines() if line.startswith("v "))
            return np.array([[float(x) for x in line[1:4]] for line in lines]).reshape(-1, 3)
    except (OSError, ValueError) as error:
        raise MeshError(f"{where}, {path}, cannot be read: {error}.", code="unreadable-file") from error
    raise MeshError(
        f"{where} is a file of kind {kind or 'unknown'!r}; STL and OBJ can be read. Leave it out by touching=.",
        code="not-supported",
    )


def _stl(data: bytes) -> NDArray[np.float64]:
    count = int.from_bytes(data[80:84], "little")
    if len(data) == 84 + 50 * count:
        triangles = np.frombuffer(data, np.dtype([("numbers", "<f4", 12), ("rest", "<u2")]), count, 84)
        return triangles["numbers"][:, 3:].reshape(-1, 3).astype(float)
    lines = (line.split() for line in data.decode("utf-8", "replace").splitlines())
    return np.array([[float(x) for x in words[1:4]] for words in lines if words[:1] == ["vertex"]]).reshape(-1, 3)
