"""Contacts of a capsule with a box: the axis points that bound the patch above a face, and the nearest point.

In the axes of the box, the axis of the capsule is the segment x(t) = c + t d, |t| ≤ ℓ, and the box is |xₖ| ≤ hₖ. Their
signed distance is that of the origin to the Minkowski sum of both, a polytope whose faces are normal to the three axes
of the box and to the three products of these with d. So

    gap = min over t of |x - clip(x)|                                       where the axis is outside of the box,
    gap = max over n of |n · c| - Σ hₖ |nₖ| - ℓ |n · d|,  n = eₖ, eₖ × d    where it is inside,

minus the radius. It changes by at most the motion of the bodies. Outside, the normal is x - clip(x) at the nearest t;
inside it is the n with the largest gap, that of a face or the product of an edge and the axis.

The derivative of half the squared distance, d · (x - clip(x)), is monotone in t and linear between the six t at which
the axis passes the planes of the faces. So the nearest t is computed exactly, without iterations.

A capsule that lies on a face, or a box on a capsule, needs two contacts: the points where the axis enters and leaves
the region above the face, or its ends. The nearest point is a third contact if it is nearer than both, for example if
an edge crosses the axis.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.geometry.pairs.registry import pair
from delassus.geometry.shapes.distances import TINY, norm
from delassus.geometry.shapes.registry import Placed, Touch, lengths

_SAME: Final = 1e-10
"""Fraction of lengths below which gaps and points count as equal."""

_STEEP: Final = 1e-30
"""Component of the direction along an axis of the box below which the capsule is normal to this axis."""


class _Axis(NamedTuple):
    """The axis of a capsule in the axes of a box with halves h (3,): c + t d for |t| ≤ reach."""

    c: Any
    d: Any
    reach: Any
    h: Any

    def at(self, t: Any) -> Any:
        return self.c + t * self.d

    def outside(self, t: Any) -> Any:
        """x - clip(x): from the nearest point (3,) of the box."""
        x = self.at(t)
        return x - np.clip(x, -self.h, self.h)

    def crossings(self, k: int) -> tuple[Any, Any]:
        """The t of the intersections with both planes of the box's axis k, in ascending order; large if parallel."""
        slope = np.where(np.abs(self.d[k]) < _STEEP, _STEEP, self.d[k])
        one, two = (-self.h[k] - self.c[k]) / slope, (self.h[k] - self.c[k]) / slope
        return np.minimum(one, two), np.maximum(one, two)


class _Side(NamedTuple):
    """A direction (3,) out of the box, the gap of the axis along it, and the t at which the axis has this gap."""

    gap: Any
    n: Any
    t: Any


@pair("capsule", "box", points=3)
def capsule_on_box(capsule: Placed, box: Placed) -> list[Touch]:
    """Contacts where the axis enters and leaves the region above a face, and at the nearest point."""
    (R, p, (radius, length)), (B, center, size) = capsule, box
    axis = _Axis(B.T @ (p - center), B.T @ R[:, 2], 0.5 * length, 0.5 * lengths(size))
    small = _SAME * np.minimum(np.min(axis.h), radius)
    t = _nearest(axis)
    offset = axis.outside(t)
    distance_outside = norm(offset)
    is_outside = distance_outside > TINY
    inner, is_edge = _exit_direction(axis, small)
    n = np.where(is_outside, offset / np.maximum(distance_outside, TINY), inner.n)
    t, deepest = np.where(is_outside, t, inner.t), np.where(is_outside, distance_outside, inner.gap)
    start, end, above = _above_face(axis, n)
    above = above & (is_outside | ~is_edge)
    plane = np.abs(n) @ axis.h  # inside, gaps are those above the plane of the face
    points = []
    for position, active in ((start, above), (end, above & (end - start > small))):
        point_offset = axis.outside(position)
        distance = norm(point_offset)
        direction = np.where(is_outside, point_offset / np.maximum(distance, TINY), n)
        points.append((active, np.where(is_outside, distance, n @ axis.at(position) - plane), direction, position))
    is_nearer = np.array(True)
    for active, gap, _, _ in points:
        is_nearer = is_nearer & (~active | (deepest < gap - small))
    points.append((is_nearer, deepest, n, t))
    absent = np.abs(deepest) + 4.0 * (np.max(axis.h) + radius + length)
    touches = []
    for active, gap, direction, position in points:
        normal = B @ direction
        point = p + position * R[:, 2] - radius * normal
        touches.append(Touch(np.where(active, gap - radius, absent), point, normal))
    return touches


def _nearest(axis: _Axis) -> Any:
    """A t at which the axis is nearest to the box."""
    low, high = np.array(-axis.reach), np.array(axis.reach)
    breakpoints = [np.clip(t, -axis.reach, axis.reach) for k in range(3) for t in axis.crossings(k)]
    slopes = [axis.d @ axis.outside(t) for t in (low, high)]
    slope_low, slope_high = np.minimum(slopes[0], 0.0), np.maximum(slopes[1], 0.0)
    low, high = np.where(slopes[1] <= 0.0, high, low), np.where(slopes[0] >= 0.0, low, high)
    for t in breakpoints:
        slope = axis.d @ axis.outside(t)
        rises, falls = (slope > 0.0) & (t < high), (slope <= 0.0) & (t > low)
        high, slope_high = np.where(rises, t, high), np.where(rises, slope, slope_high)
        low, slope_low = np.where(falls, t, low), np.where(falls, slope, slope_low)
    rise = slope_high - slope_low
    return low + (high - low) * np.where(rise > 0.0, -slope_low / np.where(rise > 0.0, rise, 1.0), 0.0)


def _exit_direction(axis: _Axis, small: Any) -> tuple[_Side, Any]:
    """The direction of the shortest path of an axis out of a box, and whether it is the product with an edge."""
    sides = [*(_face(axis, k) for k in range(3)), *(_edge(axis, k) for k in range(3))]
    best, is_edge = sides[0], np.array(False)
    for k, side in enumerate(sides[1:], 1):
        better = side.gap > best.gap + (small if k >= 3 else 0.0)  # if equal, a face is preferred
        is_edge = is_edge | better if k >= 3 else is_edge
        best = _Side(*(np.where(better, new, old) for new, old in zip(side, best, strict=True)))
    return best, is_edge


def _face(axis: _Axis, k: int) -> _Side:
    """The direction out of the face on axis k, at the deeper end of the capsule's axis."""
    side = np.where(axis.c[k] < 0.0, -1.0, 1.0)
    along = side * axis.d[k]
    n = np.stack([side if i == k else np.array(0.0) for i in range(3)])
    t = np.where(along > 0.0, -axis.reach, axis.reach)
    return _Side(np.abs(axis.c[k]) - axis.h[k] - axis.reach * np.abs(along), n, t)


def _edge(axis: _Axis, k: int) -> _Side:
    """The direction normal to an edge along axis k and to the capsule's axis, at the point nearest to the edge."""
    u, w = (k + 1) % 3, (k + 2) % 3
    size = axis.d[u] * axis.d[u] + axis.d[w] * axis.d[w]
    usable = size > _STEEP
    scale = 1.0 / np.sqrt(np.where(usable, size, 1.0))
    nu, nw = -axis.d[w] * scale, axis.d[u] * scale
    height = nu * axis.c[u] + nw * axis.c[w]
    side = np.where(height < 0.0, -1.0, 1.0)
    nu, nw = side * nu, side * nw
    gap = np.abs(height) - np.abs(nu) * axis.h[u] - np.abs(nw) * axis.h[w]
    eu, ew = np.where(nu < 0.0, -axis.h[u], axis.h[u]), np.where(nw < 0.0, -axis.h[w], axis.h[w])
    t = ((eu - axis.c[u]) * axis.d[u] + (ew - axis.c[w]) * axis.d[w]) / np.where(usable, size, 1.0)
    parts = {k: np.array(0.0), u: nu, w: nw}
    n = np.stack([parts[i] for i in range(3)])
    return _Side(np.where(usable, gap, -1e9), n, np.clip(t, -axis.reach, axis.reach))


def _above_face(axis: _Axis, n: Any) -> tuple[Any, Any, Any]:
    """The t at which the axis enters and leaves the region above the face with normal n, and whether it is above it.

    Next to the face, along one of its edges, the region is bounded by the ends of the edge only.
    """
    size = np.abs(n)
    largest = np.maximum(size[0], np.maximum(size[1], size[2]))
    first = size[0] >= largest
    across = [first, ~first & (size[1] >= largest), ~first & (size[1] < largest)]
    start, end = np.array(-axis.reach), np.array(axis.reach)
    for k in range(3):
        one, two = axis.crossings(k)
        along = np.abs(axis.d[k]) < _STEEP
        within = np.where(along, np.abs(axis.c[k]) <= axis.h[k], (one <= axis.reach) & (two >= -axis.reach))
        bounds = within & ~across[k] & ~along
        start, end = np.where(bounds, np.maximum(start, one), start), np.where(bounds, np.minimum(end, two), end)
    return start, end, start <= end
