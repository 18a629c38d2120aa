"""Capsules and boxes around shapes, for the broad phase: the gap of two shapes is at least that of their bounds.

Robot links are long. Bounding spheres of neighboring links nearly always overlap; bounding capsules seldom do. Around
flat hulls, boxes and short cylinders, a box is a tighter bound than a capsule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

import delassus.numpy as np
from delassus.geometry.candidates import Shape

Array = NDArray[numpy.float64]


class BoundingCapsule(NamedTuple):
    """The points within a radius [m] of the segment center ± half, both (3,) [m], in the axes of the shape."""

    center: Array
    half: Array
    radius: float


def bounding_capsule(shape: Shape) -> BoundingCapsule:
    """A capsule that contains a shape.

    It is the shape itself for spheres and capsules, and the capsule around both rims for cylinders.
    """
    origin, size = numpy.zeros(3), shape.size
    match shape.kind.name:
        case "sphere":
            return BoundingCapsule(origin, numpy.zeros(3), size[0])
        case "capsule" | "cylinder":
            return BoundingCapsule(origin, numpy.array([0.0, 0.0, 0.5 * size[1]]), size[0])
        case "ellipsoid":
            # For half-axes a ≥ b ≥ c: a ball of radius b moved along ±(a - b), since (x - a + b)² ≤ b² x²/a² for x ≤ a.
            k = int(numpy.argmax(size))
            b = sorted(size)[1]
            return BoundingCapsule(origin, (size[k] - b) * numpy.eye(3)[k], b)
        case _:
            return _capsule_around(numpy.asarray(shape.kind.outline(size), float))


class BoundingBox(NamedTuple):
    """The box with a center (3,) and half sizes (3,) [m], in the axes of the shape."""

    center: Array
    half: Array


def bounding_box(shape: Shape) -> BoundingBox:
    """The smallest box along a shape's axes that contains the shape."""
    size = shape.size
    match shape.kind.name:
        case "sphere":
            half = numpy.full(3, size[0])
        case "capsule":
            half = numpy.array([size[0], size[0], 0.5 * size[1] + size[0]])
        case "cylinder":
            half = numpy.array([size[0], size[0], 0.5 * size[1]])
        case "ellipsoid":
            half = numpy.array(size, float)
        case _:
            points = numpy.asarray(shape.kind.outline(size), float)
            low, high = points.min(0), points.max(0)
            return BoundingBox(0.5 * (low + high), 0.5 * (high - low))
    return BoundingBox(numpy.zeros(3), half)


def box_distance(R1: Any, p1: Any, h1: Any, R2: Any, p2: Any, h2: Any) -> Any:
    """A lower bound [m] of the distance of two boxes: the largest gap along the normals of their six faces.

    Boxes have rotations (3, 3), centers (3,) and half sizes (3,). The bound is negative if they overlap along all six
    normals.
    """
    first, second = _face_gaps(R1, p1, h1, R2, p2, h2)
    return np.maximum(np.max(first), np.max(second))


def box_excess(
    box: tuple[Any, ...], other: tuple[Any, ...], displacements: tuple[Any, Any], turn: Any, margin: Any
) -> Any:
    """The largest excess [m], along the six face normals, of the gap of two boxes over that below which they are near.

    Boxes are given as for `box_distance`. `displacements` (3,) [m] are those of the first relative to the second, at
    both centers, and `turn` (3,) [rad] is its rotation.
    """
    between, excess = other[1] - box[1], []
    for gaps, (R, _, half), displacement in zip(_face_gaps(*box, *other), (box, other), displacements, strict=True):
        w, t = R.T @ displacement, np.abs(R.T @ turn)
        closing = np.where(R.T @ between < 0.0, -w, w)
        closing = closing + np.stack([t[i] * half[j] + t[j] * half[i] for i, j in ((1, 2), (2, 0), (0, 1))])
        excess.append(np.max(gaps - np.maximum(closing, 0.0)))
    return np.maximum(*excess) - margin


def _face_gaps(R1: Any, p1: Any, h1: Any, R2: Any, p2: Any, h2: Any) -> tuple[Any, Any]:
    """Gaps (3,) of two boxes along the face normals of the first, and along those of the second."""
    C, between = R1.T @ R2, p2 - p1
    across = np.abs(C)
    return np.abs(R1.T @ between) - h1 - across @ h2, np.abs(R2.T @ between) - h2 - across.T @ h1


def _capsule_around(points: Array) -> BoundingCapsule:
    """A capsule around points (n, 3), along the direction of their largest variance."""
    low, high = points.min(0), points.max(0)
    middle = 0.5 * (low + high)
    axis = numpy.linalg.eigh((points - middle).T @ (points - middle))[1][:, -1]
    longest = numpy.eye(3)[int(numpy.argmax(high - low))]
    return min((_along(points, middle, direction) for direction in (longest, axis)), key=lambda c: c.radius)


def _along(points: Array, middle: Array, axis: Array, radii: Array | float = 0.0) -> BoundingCapsule:
    """A capsule along an axis that contains spheres of given radii."""
    along = (points - middle) @ axis
    radius = float((numpy.linalg.norm(points - middle - numpy.outer(along, axis), axis=1) + radii).max())
    start, end = float(along.min()), float(along.max())
    return BoundingCapsule(middle + 0.5 * (start + end) * axis, 0.5 * (end - start) * axis, radius)


def transform_capsule(capsule: BoundingCapsule, R: Array, p: Array) -> BoundingCapsule:
    """Transform a capsule by the rotation R (3, 3) and the translation p (3,) [m]."""
    return BoundingCapsule(p + R @ capsule.center, R @ capsule.half, capsule.radius)


def around(capsules: Sequence[BoundingCapsule]) -> BoundingCapsule:
    """A capsule that contains several capsules. Its axis is the direction of largest variance of their ends, or one of
    their axes."""
    if len(capsules) == 1:
        return capsules[0]
    ends = numpy.concatenate([[c.center - c.half, c.center + c.half] for c in capsules])
    radii = numpy.repeat([c.radius for c in capsules], 2)
    middle = 0.5 * (ends.min(0) + ends.max(0))
    principal = numpy.linalg.eigh((ends - middle).T @ (ends - middle))[1][:, -1]
    axes = [principal, *(c.half / numpy.linalg.norm(c.half) for c in capsules if c.half.any())]
    candidates = [_along(ends, middle, axis, radii) for axis in axes]
    return min(candidates, key=lambda c: c.radius**2 * (float(numpy.linalg.norm(c.half)) + c.radius))


def segment_offset(p1: Any, d1: Any, p2: Any, d2: Any) -> Any:
    """The vector (3,) [m] between the nearest points of two segments p ± d, from the second one to the first.

    Clips the nearest point of the first line to its segment, then that of the second, then that of the first again.
    """
    between = p1 - p2
    a, e, b, c, f = d1 @ d1, d2 @ d2, d1 @ d2, d1 @ between, d2 @ between
    cross = a * e - b * b
    skew = cross > 1e-9 * a * e
    s = np.where(skew, np.clip((b * f - c * e) / np.where(skew, cross, 1.0), -1.0, 1.0), 0.0)
    t = np.clip((b * s + f) / np.where(e > 0.0, e, 1.0), -1.0, 1.0)
    s = np.clip((b * t - c) / np.where(a > 0.0, a, 1.0), -1.0, 1.0)
    return between + s * d1 - t * d2
