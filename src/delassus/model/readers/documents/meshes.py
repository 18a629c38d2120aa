"""Vertices of meshes, from STL (binary or text) and OBJ files, or from the model itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from delassus.errors import BadArgument
from delassus.model.parts import Geometry

MAX_COORDINATE = 1e9
"""Of vertices [m]: products of lengths and masses stay far from overflow."""

MAX_MESH_BYTES = 512 * 2**20
"""Of a file that a model refers to: a mesh, a texture, a height field."""


class MeshError(BadArgument):
    """A mesh that cannot be read."""

    code = "bad-mesh"


_KINDS = (".stl", ".obj")


def is_readable(mesh: str) -> bool:
    """Whether the file of a mesh is there, and of a kind whose vertices are read."""
    path = Path(mesh)
    return path.suffix.lower() in _KINDS and path.is_file()


def mesh_vertices(geometry: Geometry) -> NDArray[np.float64]:
    """The vertices (n, 3) of a mesh [m], scaled, in the frame of the shape; finite, and not all in a line."""
    where = f"the mesh of the shape {geometry.name!r}"
    if geometry.vertices:
        return _check_vertices(np.array(geometry.vertices), where)
    path = Path(geometry.mesh)
    if not geometry.mesh or not path.is_file():
        raise MeshError(
            f"{where} does not exist: {geometry.mesh or 'its file is not known'!r}. Pass its folder to load as "
            "packages=, or leave the shape out by touching=.",
            code="missing-file",
        )
    with np.errstate(over="ignore", invalid="ignore"):
        vertices = _vertices(path, where) * np.array(geometry.size or (1.0, 1.0, 1.0))
    return _check_vertices(vertices, f"{where}, {path},")


def _check_vertices(vertices: NDArray[np.float64], where: str) -> NDArray[np.float64]:
    if len(vertices) < 1 or not np.all(np.isfinite(vertices)):
        raise MeshError(f"{where} has no vertices, or coordinates that are not finite.", code="bad-mesh")
    furthest = np.abs(vertices).max()
    if furthest > MAX_COORDINATE:
        raise MeshError(
            f"{where} has a vertex at {furthest:.3g} m; coordinates are at most {MAX_COORDINATE:g} m. Correct "
            "the file or its scale, or leave the shape out by touching=.",
            code="bad-mesh",
        )
    if not _spans_a_triangle(vertices):
        raise MeshError(
            f"{where} has all of its vertices on one line; a mesh needs three that span a triangle. Correct "
            "the file, or leave the shape out by touching=.",
            code="bad-mesh",
        )
    return vertices


def _spans_a_triangle(vertices: NDArray[np.float64]) -> bool:
    """Whether vertices (n, 3) are not all in one point or line, to 1e-9 of their extent."""
    arms = vertices - vertices[0]
    longest = arms[np.argmax(np.sum(arms * arms, -1))]
    size = float(np.linalg.norm(longest))
    if size == 0.0:
        return False
    return bool(np.linalg.norm(np.cross(arms, longest / size), axis=-1).max() > 1e-9 * size)


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
