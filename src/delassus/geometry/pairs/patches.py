"""Contact patches: the overlap of two facets, projected along the normal, reduced to at most four points.

Both facets are convex polygons or segments. Their intersection in the plane normal to the contact normal has three
types of corners: corners of each that are within the other, and crossings of two edges. At each of them the gap is the
difference of the heights of both facets along the normal, which is at least the gap of the bodies.

A slot has the corner that is farthest in the slot's direction, which rotates with the first facet. The directions are
(1, 0.8) and its quarter turns, in units of the facets' widths. They distinguish the corners of rectangles and rhombi,
so that a slot keeps its corner under small motions. The score includes depth: on tilted facets, slots are on the lower
side. If no slot has the smallest gap of the bodies, the nearest slot gets it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import scan
from delassus.geometry.pairs.separation import Separation
from delassus.geometry.shapes.distances import norm
from delassus.geometry.shapes.registry import Facet, Touch

_SAME: Final = 1e-6
"""Fraction of the facets' widths below which points coincide and points outside count as within."""

_TINY: Final = 1e-12
"""Smallest width [m], for facets that are points."""

_MOVED: Final = 1e-4
"""Fraction of the facets' widths by which the smallest gap must be below all others for its point to take a slot."""

_REPEATED: Final = 1e-9
"""Fraction of the facets' widths below which two slots have the same corner."""

_PARALLEL: Final = 1e-9
"""The sine of the angle between edges that do not cross."""

_LOWER: Final = 2.0
"""Weight of heights relative to widths."""

_FACETS: Final = 4096.0
"""Factor that combines the facet indices of two shapes into a feature; larger than the number of facets of a shape."""

_DIRECTIONS: Final = {
    2: numpy.array([(1.0, 0.1), (-1.0, -0.1)]),
    4: numpy.array([(1.0, 0.8), (-0.8, 1.0), (-1.0, -0.8), (0.8, -1.0)]),
}
"""The directions of the slots of a patch."""


class _Polygon(NamedTuple):
    """A facet in contact axes: corners (k, 3) with heights last, its normal (3,), and whether it has an area."""

    corners: Any
    normal: Any
    is_flat: Any

    def height(self, y: Any) -> Any:
        """The height of the facet's plane at a point (2,)."""
        a, m = self.corners[0], self.normal
        steep = np.abs(m[2]) < _PARALLEL
        return a[2] - (m[0] * (y[0] - a[0]) + m[1] * (y[1] - a[1])) / np.where(steep, 1.0, m[2])

    def contains(self, y: Any, small: Any) -> Any:
        """Whether a point (2,) is within the facet, up to a distance `small`."""

        def visit(bounds: tuple[Any, Any], edge: tuple[Any, Any]) -> tuple[tuple[Any, Any], None]:
            a, b = edge
            direction = b[:2] - a[:2]
            size = np.sqrt(direction @ direction)
            side = (direction[0] * (y[1] - a[1]) - direction[1] * (y[0] - a[0])) / np.where(size > small, size, 1.0)
            side = np.where(size > small, side, 0.0)
            return (np.minimum(bounds[0], side), np.maximum(bounds[1], side)), None

        ends = np.concatenate([self.corners[1:], self.corners[:1]])
        (lowest, highest), _ = scan(visit, (np.array(0.0), np.array(0.0)), (self.corners, ends))
        return self.is_flat & ((lowest >= -small) | (highest <= small))


class _Slots(NamedTuple):
    """For each slot the best score, the point and height on the first body, and the gap."""

    score: Any
    place: Any
    gap: Any


def patch_touches(deepest: Separation, one: Facet, other: Facet, slots: int) -> list[Touch]:
    """Contacts of two facets of cores, of which the first faces against the normal and the second along it.

    Cost: 60 operations for each corner and 100 for each pair of edges, in loops.
    """
    n, origin = deepest.normal, deepest.point
    axis = _across(n, one.axis, other.axis)
    axes = np.stack([axis, np.cross(n, axis), n])
    first, second = (_polygon(facet, axes, origin) for facet in (one, other))
    widths = _width(first), _width(second)
    width = np.maximum(np.minimum(*widths), _SAME * np.max(np.maximum(*widths)) + _TINY)
    size = np.max(width)
    small = _SAME * size
    offer = _offers(deepest, width, slots)

    def corner_of_first(best: _Slots, a: Any) -> tuple[_Slots, None]:
        return offer(best, second.contains(a[:2], small), a, a[2] - second.height(a[:2])), None

    def corner_of_second(best: _Slots, b: Any) -> tuple[_Slots, None]:
        x = np.stack([b[0], b[1], first.height(b[:2])])
        return offer(best, first.contains(b[:2], small), x, x[2] - b[2]), None

    def crossing(best: _Slots, edges: Any) -> tuple[_Slots, None]:
        a, a_end = (np.take(first.corners, edges[k], axis=0) for k in (0, 1))
        b, b_end = (np.take(second.corners, edges[k], axis=0) for k in (2, 3))
        u, w, c = a_end - a, b_end - b, b - a
        det = u[0] * w[1] - u[1] * w[0]
        lengths = np.sqrt((u[0] * u[0] + u[1] * u[1]) * (w[0] * w[0] + w[1] * w[1]))
        cross = np.abs(det) > _PARALLEL * lengths
        safe = np.where(cross, det, 1.0)
        s, t = (c[0] * w[1] - c[1] * w[0]) / safe, (c[0] * u[1] - c[1] * u[0]) / safe
        x = a + s * u
        within = cross & (s >= 0.0) & (s <= 1.0) & (t >= 0.0) & (t <= 1.0)
        return offer(best, within, x, x[2] - (b[2] + t * w[2])), None

    best = _empty(slots)
    best, _ = scan(corner_of_first, best, first.corners)
    best, _ = scan(corner_of_second, best, second.corners)
    best, _ = scan(crossing, best, _edge_pairs(len(first.corners), len(second.corners)))
    return _with_deepest(best, deepest, axes, size, (one.number * _FACETS + other.number) * 4.0 + 1.0)


def select_touches(
    deepest: Separation, axes: Any, width: Any, corners: tuple[Any, Any, Any], feature: Any
) -> list[Touch]:
    """Four contacts of a patch with known corners: whether they exist (k,), their points (k, 3) and gaps (k,).

    The rows of `axes` (3, 3) are the axes of the patch, its normal last; `width` (2,) has half its extents.
    """
    offer = _offers(deepest, width, 4)

    def visit(best: _Slots, corner: tuple[Any, Any, Any]) -> tuple[_Slots, None]:
        active, point, gap = corner
        return offer(best, active > 0.5, axes @ (point - deepest.point), gap), None

    best, _ = scan(visit, _empty(4), (np.where(corners[0], 1.0, 0.0), *corners[1:]))
    return _with_deepest(best, deepest, axes, np.max(width), feature)


def _empty(slots: int) -> _Slots:
    return _Slots(np.full(slots, -1e300), np.zeros((slots, 3)), np.full(slots, 1e300))


def _offers(deepest: Separation, width: Any, slots: int) -> Callable[[_Slots, Any, Any, Any], _Slots]:
    """A function that inserts an active corner, with its point (3,) and gap, into slots where it has the best score."""
    size = np.max(width)
    directions = _DIRECTIONS[slots] / np.maximum(width, _SAME * size)

    def offer(best: _Slots, active: Any, place: Any, gap: Any) -> _Slots:
        score = directions @ place[:2] - _LOWER * (gap - deepest.gap) / size
        better = active & (score > best.score)
        places = np.where(better[:, None], place, best.place)
        return _Slots(np.where(better, score, best.score), places, np.where(better, gap, best.gap))

    return offer


def _with_deepest(best: _Slots, deepest: Separation, axes: Any, size: Any, feature: Any) -> list[Touch]:
    """The contacts of the slots; slots that repeat another one have large gaps.

    If no slot has the gap of `deepest`, the nearest slot gets it. It also gets the point of `deepest` if its own gap is
    much larger.
    """
    slots = len(best.gap)
    absent = [best.score[k] < -1e299 for k in range(slots)]
    for k in range(slots):
        for j in range(k):
            separation = best.place[k][:2] - best.place[j][:2]
            absent[k] = absent[k] | (separation @ separation <= (_REPEATED * size) ** 2)
    distance = [np.where(absent[k], 1e200, best.place[k][:2] @ best.place[k][:2]) for k in range(slots)]
    nearest, excess = np.argmin(np.stack(distance)), np.min(best.gap) - deepest.gap
    touches = []
    for k in range(slots):
        is_nearest = nearest == float(k)
        takes_deepest_point = is_nearest & (excess > _MOVED * size)
        position = np.where(takes_deepest_point, 0.0, best.place[k])
        # Faces of tables have an error of their tolerance, so gaps are bounded below by that of the bodies.
        gap = np.where(absent[k], 1e100, np.maximum(best.gap[k], deepest.gap))
        gap = np.where(is_nearest & (excess > _REPEATED * size), deepest.gap, gap)
        touches.append(Touch(gap, deepest.point + axes.T @ position, deepest.normal, feature + k))
    return touches


def _edge_pairs(k: int, m: int) -> Any:
    """Indices (k m, 4) of the corners of all pairs of edges."""
    pairs = [
        (i, (i + 1) % k, j, (j + 1) % m) for i in range(k if k > 2 else k - 1) for j in range(m if m > 2 else m - 1)
    ]
    return numpy.array(pairs, float).reshape(-1, 4)


def _across(n: Any, axis: Any, alternative: Any) -> Any:
    """A unit vector (3,) orthogonal to n: the projection of `axis`, or of `alternative` if `axis` is nearly parallel
    to n."""
    result = numpy.array([1.0, 0.0, 0.0])
    far_from_x = np.abs(n[0]) < 0.8
    result = np.where(far_from_x, result, numpy.array([0.0, 1.0, 0.0]))
    result = result - (result @ n) * n
    for candidate in (alternative, axis):
        part = candidate - (candidate @ n) * n
        result = np.where(part @ part > 0.01, part, result)
    return result / norm(result)


def _polygon(facet: Facet, axes: Any, origin: Any) -> _Polygon:
    corners = np.stack([axes @ (facet.corners[k] - origin) for k in range(len(facet.corners))])
    area, reach = np.array(0.0), np.array(0.0)
    for k in range(1, len(facet.corners) - 1):
        u, w = corners[k] - corners[0], corners[k + 1] - corners[0]
        area = area + (u[0] * w[1] - u[1] * w[0])
        reach = np.maximum(reach, np.maximum(u @ u, w @ w))
    return _Polygon(corners, axes @ facet.normal, np.abs(area) > _SAME * reach)


def _width(polygon: _Polygon) -> Any:
    """Half the extents (2,) of a polygon in the plane normal to the contact normal."""
    return 0.5 * (np.max(polygon.corners[:, :2], axis=0) - np.min(polygon.corners[:, :2], axis=0))
