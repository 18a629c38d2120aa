"""Convex hulls of meshes, simplified when they are loaded.

By default, the Hausdorff error is at most 5 mm or 1 % of the diagonal of the bounding box, whichever is smaller, unless
64 vertices do not suffice. Meshes of CAD files have thousands of vertices, of which contact needs a few dozen.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Final

import numpy as np

from delassus.geometry.hulls.quickhull import Hull, convex_hull
from delassus.model.parts import Geometry
from delassus.model.readers.documents.meshes import mesh_vertices

HULL_ERROR: Final = 5e-3
"""Largest error [m] of simplified hulls."""

HULL_SHARE: Final = 0.01
"""Largest error of simplified hulls, as a fraction of the diagonal of the bounding box."""

MOST_VERTICES: Final = 64
"""Largest number of vertices of a simplified hull."""


def mesh_hull(geometry: Geometry, hull_error: float | None = None) -> Hull:
    """The simplified hull of a mesh, in the frame of the shape; `Hull.error` [m] is its Hausdorff error.

    Args:
        geometry: A shape with vertices, or with the file of a mesh, STL or OBJ.
        hull_error: The Hausdorff error [m] to simplify to; None for the default. The hull has at most 64 vertices
            either way.
    """
    if geometry.vertices:
        return _simplify_cached(geometry, hull_error, (0, 0))
    try:
        status = Path(geometry.mesh).stat()
    except (OSError, ValueError):
        mesh_vertices(geometry)  # raises if the file is missing
        raise
    return _simplify_cached(geometry, hull_error, (status.st_mtime_ns, status.st_size))


@functools.lru_cache(maxsize=256)
def _simplify_cached(geometry: Geometry, hull_error: float | None, version: tuple[int, int]) -> Hull:
    """The simplified mesh, computed once for each version of a file."""
    vertices = mesh_vertices(geometry)
    bound = hull_error
    if bound is None:
        bound = min(HULL_ERROR, HULL_SHARE * float(np.linalg.norm(np.ptp(vertices, axis=0))))
    hull = convex_hull(vertices, bound, MOST_VERTICES)
    for array in hull[:2]:
        array.flags.writeable = False
    return hull
