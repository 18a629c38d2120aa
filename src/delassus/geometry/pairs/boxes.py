"""Contacts of two boxes: face against face, or two crossing edges.

Two boxes have fifteen separating axes: three face normals of each, and nine products of edges. The contact normal is
the axis with the largest gap. If it is a face normal, that face is the reference. The contact points are the corners
of the overlap of this face and the face of the other box that is most nearly opposite, at most an octagon. If the axis
is a product, the two nearest edges touch.

Parallel edges have no product. If two of them touch, as those of leaning cards, the face normals a and b of both boxes
and all directions between them are equally good. These edges are rounded with radii whose sum ρ is a hundredth of the
thinner box's half thickness. With the gaps gₐ and g_b on both axes, the boxes without their rounding are apart by the
shortest u with a · u = gₐ + ρ and b · u = g_b + ρ:

    u = (wₐ a + w_b b)/(1 - c²),   wₐ = gₐ + ρ - c (g_b + ρ),   w_b = g_b + ρ - c (gₐ + ρ),   c = a · b

If both weights are positive, the gap is |u| - ρ. It changes by at most the motion of the boxes, and the normal turns
from a to b over displacements of the order of ρ. Boxes farther apart than ρ have their Euclidean distance d. In total,
the gap is max(d, min(|u| - ρ, ρ)), which also changes by at most their motion. The distance d is either the gap on the
product of two crossing edges, or that of a corner of one box from the other box.

At most four corners of the octagon are kept: the deepest, and those that span it. Unused contacts have large gaps.
"""

from __future__ import annotations

import itertools
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import scan
from delassus.geometry.pairs.patches import select_touches
from delassus.geometry.pairs.registry import pair
from delassus.geometry.pairs.separation import Separation
from delassus.geometry.shapes.distances import norm
from delassus.geometry.shapes.registry import Placed, Touch, lengths

PLACES: Final = 4
"""Number of contacts of two boxes."""

_SAME: Final = 1e-6
"""Fraction of a box's size below which differences are ignored: of two equal axes the first is used, and points on a
boundary coincide."""

_PARALLEL: Final = 1e-10
"""Squared sine of the angle between edges below which they are parallel."""

_ROUND: Final = 1e-2
"""ρ, the sum of the rounding radii of parallel edges, as a fraction of the thinner box's half thickness."""

_BLEND: Final = 4.0
"""Distance, as a multiple of ρ, from which on the normal between parallel edges is that of the nearest points."""

_ABSENT: Final = 1e99
"""Gap [m] above which a slot has no corner."""

_ALIGNED: Final = 1.0 - 5e-7
"""Cosine of the angle between face normals above which the faces are parallel."""


_SIGNS: Final = numpy.array(list(itertools.product((-1.0, 1.0), repeat=3)))
"""Signs (8, 3) of the corners of a box."""


class _Face(NamedTuple):
    """A face of a box: outward normal, directions and half lengths of two edges, center, and index."""

    n: Any
    u: Any
    w: Any
    hu: Any
    hw: Any
    center: Any
    number: Any


class _Edges(NamedTuple):
    """The axis normal to two edges, their gap along it, the midpoint, direction and half length of each edge, and the
    index of the pair."""

    gap: Any
    n: Any
    p1: Any
    d1: Any
    h1: Any
    p2: Any
    d2: Any
    h2: Any
    number: Any


@pair("box", "box", points=PLACES)
def box_touches(one: Placed, other: Placed, absent: Any = None) -> list[Touch]:
    """The contacts of two boxes; normals point to the first.

    Unused contacts have the gap `absent` [m]; by default it is larger than the size of both boxes, and boxes whose
    faces do not overlap touch with the nearest corner.
    """
    (R1, p1, size), (R2, p2, other_size) = one, other
    h1, h2 = 0.5 * lengths(size), 0.5 * lengths(other_size)
    thin = np.minimum(np.min(h1), np.min(h2))
    small = _SAME * thin
    away = p1 - p2
    first_face, gap1, (next_n, next_gap) = _nearest_face(R1, p1, h1, -away, R2, h2, small)
    second_face, gap2, _ = _nearest_face(R2, p2, h2, away, R1, h1, small)
    edges = _nearest_edges(R1, p1, h1, R2, p2, h2, away, small)
    aligned = first_face.n @ second_face.n < -_ALIGNED  # the faces next to the touching edges are parallel
    axis, gap = np.where(aligned, -next_n, -first_face.n), np.where(aligned, next_gap, gap1)
    flat, between, rounded = _rounded(axis, gap, second_face.n, gap2, _ROUND * thin)
    flat = np.maximum(flat, gap1)
    # Between parallel edges, the reference is the face most aligned with the normal, in either order of the boxes.
    by_first = np.where(rounded, axis @ between > second_face.n @ between + _SAME, gap1 > gap2 + small)
    crossing = edges.gap > flat + small
    unused_gap = np.abs(flat) + 4.0 * (np.max(h1) + np.max(h2)) if absent is None else absent
    above = [_facing(R, p, h, face.n) for R, p, h, face in ((R2, p2, h2, first_face), (R1, p1, h1, second_face))]
    reference = _Face(*(np.where(by_first, a, b) for a, b in zip(first_face, second_face, strict=True)))
    incident = _Face(*(np.where(by_first, a, b) for a, b in zip(*above, strict=True)))
    side = np.where(by_first, -1.0, 1.0)
    towards = np.where(rounded, between, side * reference.n)
    normal = np.where(crossing, edges.n, towards)
    corners = _polygon(
        reference, incident, small, np.where(rounded, 2.0 * _ROUND * thin, 0.0), (rounded, side * between, flat)
    )
    active = np.stack([exists & ~crossing for exists, _, _ in corners])
    points = np.stack([point for _, _, point in corners])
    gaps = np.stack([np.where(exists, gap, unused_gap) for exists, gap, _ in corners])
    lowest = np.argmin(gaps)
    meets, point = _between(edges, small)
    gap = np.where(crossing, np.where(meets, edges.gap, unused_gap), np.take(gaps, lowest))
    deepest = Separation(gap, np.where(crossing, point, np.take(points, lowest, axis=0)), normal)
    largest = np.maximum(np.maximum(gap1, gap2), edges.gap)
    is_beside = rounded if absent is not None else rounded | (gap > largest + small)
    bound = np.where(rounded, np.maximum(largest, np.minimum(flat, _ROUND * thin)), largest)
    across = Separation(np.where(meets & (edges.gap > 0.0), edges.gap, unused_gap), point, edges.n)
    candidate = Separation(*(np.where(rounded, a, b) for a, b in zip(across, deepest, strict=True)))
    smooth = np.where(rounded, _BLEND * _ROUND * thin, 0.0)
    deepest = cond(
        is_beside & (largest > 0.0), lambda: _nearest_features(one, other, candidate, bound, (normal, smooth)), deepest
    )
    # The patch is translated so that its lowest corner has the gap of the boxes. If the bound by two planes is less
    # than the distance, the nearest features are not in the patch, and the patch is farther away.
    excess = deepest.gap - gap
    gaps = gaps + np.where(rounded, excess + np.maximum(excess, 0.0), 0.0)
    # Slots rotate with the smaller box, since the reference face may change while boxes rest.
    one_is_smaller = np.sum(h1) <= np.sum(h2)
    is_reference = by_first == one_is_smaller
    smaller = _Face(*(np.where(is_reference, a, b) for a, b in zip(reference, incident, strict=True)))
    larger = np.where(is_reference, incident.number, reference.number)
    axes = np.stack([smaller.u, smaller.w, smaller.n])
    feature = 4.0 * np.where(crossing, 64.0 + edges.number, 8.0 * smaller.number + larger) + 1.0
    touches = select_touches(deepest, axes, _patch_width(axes, reference, incident), (active, points, gaps), feature)
    return [touch._replace(gap=np.where(touch.gap < _ABSENT, touch.gap, unused_gap)) for touch in touches]


def _nearest_features(
    one: Placed, other: Placed, candidate: Separation, bound: Any, blend: tuple[Any, Any]
) -> Separation:
    """The distance of separated boxes: the minimum of `candidate` and of the distances of corners from the other box.

    The gap is at least `bound`, the largest gap on all axes or that of rounded edges. `blend` has a normal and a length
    [m]: over this length, the normal changes from that of `blend` to that of the nearest points.
    """

    def from_corners(cornered: Placed, box: Placed) -> tuple[Any, Any, Any]:
        """The smallest distance of the corners of `cornered` from `box`, the corner, and the nearest point of `box`."""
        half, half_cornered = 0.5 * lengths(box.size), 0.5 * lengths(cornered.size)

        def visit(best: tuple[Any, Any, Any], signs: Any) -> tuple[Any, None]:
            corner = cornered.p + cornered.R @ (signs * half_cornered)
            local = box.R.T @ (corner - box.p)
            nearest = box.p + box.R @ np.clip(local, -half, half)
            offset = corner - nearest
            distance = np.sqrt(offset @ offset)
            new = (distance, corner, nearest)
            return tuple(np.where(distance < best[0], a, b) for a, b in zip(new, best, strict=True)), None

        return scan(visit, (np.array(1e300), cornered.p, box.p), _SIGNS)[0]

    from_first, from_second = from_corners(one, other), from_corners(other, one)
    is_from_first = from_first[0] <= from_second[0]
    gap = np.where(is_from_first, from_first[0], from_second[0])
    point, nearest = (
        np.where(is_from_first, from_first[1], from_second[2]),
        np.where(is_from_first, from_first[2], from_second[1]),
    )
    new = Separation(gap, point, (point - nearest) / np.where(gap > 0.0, gap, 1.0))
    nearer = gap < candidate.gap
    closest = Separation(*(np.where(nearer, a, b) for a, b in zip(new, candidate, strict=True)))
    touch_normal, length = blend
    weight = np.where(closest.gap < length, closest.gap / np.where(length > 0.0, length, 1.0), 1.0)
    weight = np.where(closest.gap > 0.0, weight, 0.0)
    n = weight * closest.normal + (1.0 - weight) * touch_normal
    return Separation(np.maximum(closest.gap, bound), closest.point, n / norm(n))


def _patch_width(axes: Any, face: _Face, above: _Face) -> Any:
    """An upper bound on half the extents (2,) of the overlap of a face and another one above it."""
    extents = [
        np.stack([part.hu * np.abs(axis @ part.u) + part.hw * np.abs(axis @ part.w) for axis in (axes[0], axes[1])])
        for part in (face, above)
    ]
    return np.minimum(*extents)


def _rounded(a: Any, gap_a: Any, b: Any, gap_b: Any, rho: Any) -> tuple[Any, Any, Any]:
    """The gap of rounded edges between two axes a and b (3,), the normal, and whether both weights are positive."""
    c, x, y = a @ b, gap_a + rho, gap_b + rho
    first, second, square = x - c * y, y - c * x, 1.0 - c * c
    rounded = (first > 0.0) & (second > 0.0) & (c > -_SAME) & (c < _ALIGNED)
    length = np.sqrt(np.where(rounded, first * x + second * y, 1.0) / np.where(rounded, square, 1.0))
    n = (first * a + second * b) / np.where(rounded, square * length, 1.0)
    return np.where(rounded, length - rho, np.maximum(gap_a, gap_b)), n, rounded


def _select(conditions: list[Any], values: list[Any]) -> Any:
    """The value whose condition holds; the last one if no other does."""
    result = values[-1]
    for condition, value in zip(reversed(conditions[:-1]), reversed(values[:-1]), strict=True):
        result = np.where(condition, value, result)
    return result


def _face(R: Any, p: Any, h: Any, conditions: list[Any], signs: list[Any]) -> _Face:
    """The face on one of three axes, on the side given by a sign."""
    turns = [(k, (k + 1) % 3, (k + 2) % 3) for k in range(3)]
    n = _select(conditions, [signs[k] * R[:, k] for k, _, _ in turns])
    u, w = (_select(conditions, [R[:, turn[i]] for turn in turns]) for i in (1, 2))
    depth, hu, hw = (_select(conditions, [np.array(h[turn[i]]) for turn in turns]) for i in (0, 1, 2))
    number = _select(conditions, [2.0 * k + np.where(signs[k] > 0.0, 0.0, 1.0) for k in range(3)])
    return _Face(n, u, w, hu, hw, p + depth * n, number)


def _nearest_face(
    R: Any, p: Any, h: Any, to_other: Any, R2: Any, h2: Any, small: Any
) -> tuple[_Face, Any, tuple[Any, Any]]:
    """The face of a box with the largest gap to another box, the gap, and normal and gap of the second best face."""
    across = R.T @ to_other
    half_width = np.abs(R.T @ R2) @ h2
    gaps = [np.abs(across[k]) - h[k] - half_width[k] for k in range(3)]
    first = (gaps[0] >= gaps[1] - small) & (gaps[0] >= gaps[2] - small)
    second = gaps[1] >= gaps[2] - small
    conditions = [first, second, None]
    signs = [np.where(across[k] < 0.0, -1.0, 1.0) for k in range(3)]
    normals = [signs[k] * R[:, k] for k in range(3)]
    rest = [tuple(k for k in range(3) if k != best) for best in range(3)]
    one, two = (_select(conditions, [gaps[pair[i]] for pair in rest]) for i in (0, 1))
    others = [_select(conditions, [normals[pair[i]] for pair in rest]) for i in (0, 1)]
    second_best = np.where(two > one, others[1], others[0]), np.maximum(one, two)
    return _face(R, p, h, conditions, signs), _select(conditions, gaps), second_best


def _facing(R: Any, p: Any, h: Any, n: Any) -> _Face:
    """The face of a box whose normal is most nearly opposite to a direction."""
    along = R.T @ n
    size = np.abs(along)
    conditions = [(size[0] >= size[1]) & (size[0] >= size[2]), size[1] >= size[2], None]
    return _face(R, p, h, conditions, [np.where(along[k] > 0.0, -1.0, 1.0) for k in range(3)])


def _polygon(
    face: _Face, above: _Face, small: Any, beside: Any, edge: tuple[Any, Any, Any]
) -> list[tuple[Any, Any, Any]]:
    """Corners of the overlap of a face and another one above it: whether they exist, their gaps, and points.

    Gaps are heights above the face. `edge` has a flag that says whether an edge is rounded, and the normal and gap of
    this edge. With a rounded edge, gaps are measured along its normal, relative to the lowest corner. Coordinates x and
    y are along the edges of the face, and z is the height above it. Points outside the face by less than `beside` count
    as above it.
    """
    axes = np.stack([face.u, face.w, face.n])
    center, s, t = axes @ (above.center - face.center), above.hu * (axes @ above.u), above.hw * (axes @ above.w)
    wide, candidates = np.stack([face.hu, face.hw]) + beside, []
    corners = [center + a * s + b * t for a, b in ((1, 1), (-1, 1), (-1, -1), (1, -1))]
    for corner in corners:
        within = np.all(np.abs(corner[:2]) <= wide + small)
        candidates.append((within, corner))
    # A corner of the face as center + a s + b t; the face above is not vertical.
    det = s[0] * t[1] - s[1] * t[0]
    det = np.where(np.abs(det) > 0.0, det, 1.0)
    for x, y in ((1, 1), (-1, 1), (-1, -1), (1, -1)):
        dx, dy = x * face.hu - center[0], y * face.hw - center[1]
        a, b = (dx * t[1] - dy * t[0]) / det, (dy * s[0] - dx * s[1]) / det
        height = center[2] + a * s[2] + b * t[2]
        within = (np.abs(a) * above.hu <= above.hu + small) & (np.abs(b) * above.hw <= above.hw + small)
        candidates.append((within, np.stack([x * face.hu, y * face.hw, height])))
    for k in range(4):
        start, end = corners[k], corners[(k + 1) % 4]
        candidates += _clip_edge(start, end - start, wide)
    origin = face.center
    rounded, normal, gap = edge
    n = np.where(rounded, axes @ normal, numpy.array([0.0, 0.0, 1.0]))
    lowest = corners[0] @ n
    for corner in corners[1:]:
        lowest = np.minimum(lowest, corner @ n)
    offset = np.where(rounded, gap - lowest, 0.0)
    return [(active, at @ n + offset, origin + axes.T @ at) for active, at in candidates]


def _clip_edge(start: Any, edge: Any, wide: Any) -> list[tuple[Any, Any]]:
    """The points where an edge, start + λ edge for λ from 0 to 1, enters and leaves the region above a face."""
    begin, end = np.array(0.0), np.array(1.0)
    for k in range(2):
        is_parallel = np.abs(edge[k]) <= 1e-9 * wide[k]
        slope = np.where(is_parallel, 1.0, edge[k])
        low, high = (-wide[k] - start[k]) / slope, (wide[k] - start[k]) / slope
        outside = np.abs(start[k]) > wide[k]
        begin = np.maximum(begin, np.where(is_parallel, np.where(outside, 2.0, 0.0), np.minimum(low, high)))
        end = np.minimum(end, np.where(is_parallel, 1.0, np.maximum(low, high)))
    return [(begin <= end, start + at * edge) for at in (begin, end)]


def _nearest_edges(R1: Any, p1: Any, h1: Any, R2: Any, p2: Any, h2: Any, away: Any, small: Any) -> _Edges:
    """The pair of edges with the largest gap along the axis normal to both."""
    best: list[Any] = []
    for i, j in itertools.product(range(3), range(3)):
        across = np.cross(R1[:, i], R2[:, j])
        size = np.sum(across * across)
        usable = size > _PARALLEL
        n = across / np.sqrt(np.where(usable, size, 1.0))
        n = np.where(away @ n < 0.0, -1.0, 1.0) * n  # from the second to the first
        a, b = R1.T @ n, R2.T @ n
        gap = away @ n - np.abs(a) @ h1 - np.abs(b) @ h2
        below = [0.0 if k == i else np.where(a[k] > 0.0, -h1[k], h1[k]) for k in range(3)]
        over = [0.0 if k == j else np.where(b[k] > 0.0, h2[k], -h2[k]) for k in range(3)]
        first, second = p1 + R1 @ np.stack(below), p2 + R2 @ np.stack(over)
        values = [gap, n, first, R1[:, i], np.array(h1[i]), second, R2[:, j], np.array(h2[j]), np.array(3.0 * i + j)]
        if not best:
            best = [np.where(usable, gap, -1e9), *values[1:]]
            continue
        better = usable & (gap > best[0] + small)
        best = [np.where(better, new, old) for new, old in zip(values, best, strict=True)]
    return _Edges(*best)


def _between(edges: _Edges, small: Any) -> tuple[Any, Any]:
    """Whether two edges cross within their lengths, and the point of the first that is nearest to the second."""
    d, c = edges.p2 - edges.p1, edges.d1 @ edges.d2
    sine = np.maximum(1.0 - c * c, _PARALLEL)
    s = (d @ edges.d1 - c * (d @ edges.d2)) / sine
    t = (c * (d @ edges.d1) - d @ edges.d2) / sine
    within = (np.abs(s) <= edges.h1 + small) & (np.abs(t) <= edges.h2 + small)
    return within, edges.p1 + s * edges.d1
