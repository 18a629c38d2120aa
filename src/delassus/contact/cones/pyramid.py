"""Friction pyramids: K flat faces in place of Coulomb's cone, for linear programs and complementarity problems.

Both pyramids touch the cone in the K directions 2πk/K, counted from t1 towards t2. The inner pyramid lies inside the
cone and touches it with its edges. The outer one contains the cone and touches it with the centers of its faces. With
four faces the inner pyramid is |λ_t1| + |λ_t2| ≤ friction · λ_n, the outer one |λ_t1|, |λ_t2| ≤ friction · λ_n. The
inner one has cos(π/K) times the friction of the outer one: 0.71 for four faces, 0.92 for eight, 0.98 for sixteen.

All functions take batches of coefficients (…), of impulses (…, 3), and traced arrays.
"""

from __future__ import annotations

from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.common.checks import check_integer, one_of
from delassus.contact.cones.second_order import edge_of, three

PYRAMIDS: Final = ("inner", "outer")


def pyramid_rows(friction: Any, faces: int = 4, pyramid: str = "inner") -> Any:
    """(…, K + 1, 3) rows A of unit length; the pyramid is A λ ≤ 0. The last row is λ_n ≥ 0."""
    angles, (c, s) = face_angles(faces, pyramid), edge_of(friction, reach(faces, pyramid))
    c, s = c[..., None], s[..., None]
    sides = np.stack([s * numpy.cos(angles), s * numpy.sin(angles), -c * numpy.ones(faces)], -1)
    bottom = numpy.broadcast_to([0.0, 0.0, -1.0], (*sides.shape[:-2], 1, 3))
    return np.concatenate([sides, bottom], -2)


def pyramid_edges(friction: Any, faces: int = 4, pyramid: str = "inner") -> Any:
    """(…, K, 3) edges of unit length; the pyramid is the set of their nonnegative combinations."""
    x, y = corners(faces, pyramid)
    radius = float(numpy.hypot(x[0], y[0]))
    c, s = edge_of(friction, radius)
    c, s = c[..., None], s[..., None]
    return np.stack([c * x / radius, c * y / radius, s * numpy.ones(faces)], -1)


def project_pyramid(x: Any, friction: Any, faces: int = 4, pyramid: str = "inner") -> Any:
    """Project points (…, 3) onto the pyramid.

    The mirror planes of the pyramid keep a point and its projection in the same sector, so one sector is enough. The
    projection is the point itself, or lies on the face, on an edge, or at the apex.
    """
    x, angles, (c, s) = three(x), face_angles(faces, pyramid), edge_of(friction, reach(faces, pyramid))
    step = 2.0 * numpy.pi / faces
    turn = angles[0] + step * np.rint((np.arctan2(x[..., 1], x[..., 0]) - angles[0]) / step)
    cos, sin = np.cos(turn), np.sin(turn)
    # In the axes of the face: u across it, w along it, z the normal. The face is the ray (c, s) of the plane u, z, and
    # as wide as its edges (c, ±half, s) are apart.
    u, w, z = cos * x[..., 0] + sin * x[..., 1], cos * x[..., 1] - sin * x[..., 0], x[..., 2]
    inside = (s * u <= c * z) & (z >= 0.0)
    half = c * numpy.tan(numpy.pi / faces)
    on_face = np.maximum(c * u + s * z, 0.0)
    on_edge = np.maximum((c * u + half * np.abs(w) + s * z) / (1.0 + half * half), 0.0)
    beside = np.abs(w) > half * on_face
    tangential = np.where(beside, on_edge, on_face)
    w = np.where(beside & ~inside, np.where(w < 0.0, -half, half) * tangential, w)
    u, z = np.where(inside, u, c * tangential), np.where(inside, z, s * tangential)
    return np.stack([cos * u - sin * w, sin * u + cos * w, z], -1)


def violation(rows: Any, x: Any) -> Any:
    """(…) the largest violation of rows A x ≤ 0 (…, k, n) by x (…, n); zero inside.

    The rows are those of `pyramid_rows`, `foot_rows`, or any others.
    """
    rows, x = np.asarray(rows), np.asarray(x)
    length = np.sqrt(np.sum(rows * rows, -1))
    excess = np.sum(rows * x[..., None, :], -1) / np.where(length > 0.0, length, 1.0)
    return np.maximum(np.max(excess, -1), 0.0)


def face_angles(faces: int, pyramid: str) -> Any:
    """(K,) directions of the faces' outward normals in the tangent plane."""
    check_integer("faces", faces, 3)
    check_pyramid(pyramid)
    return (2.0 * numpy.arange(faces) + (pyramid == "inner")) * numpy.pi / faces


def check_pyramid(pyramid: str) -> None:
    """Raise an error unless this is the name of a pyramid."""
    one_of("pyramid", pyramid, PYRAMIDS)


def corners(faces: int, pyramid: str) -> Any:
    """(2, K) the corners of the polygon that replaces the circle of radius one."""
    angles = face_angles(faces, pyramid) - numpy.pi / faces
    return reach(faces, pyramid) / numpy.cos(numpy.pi / faces) * numpy.stack([numpy.cos(angles), numpy.sin(angles)])


def reach(faces: int, pyramid: str) -> float:
    """The slope of the faces, relative to the coefficient of friction."""
    return float(numpy.cos(numpy.pi / faces)) if pyramid == "inner" else 1.0
