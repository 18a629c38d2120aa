"""Where boxes meet: the axis along which they are farthest apart, and the points of a face clipped by the other.

All pairs at once. Of the fifteen axes that may separate two boxes, six are normals of faces and nine are products of
edges. If a face wins, the other box's most opposed face is clipped by the sides of the first, up to eight points; if a
pair of edges wins, by more than rounding, the points of the two edges that are nearest are the contact.

Reference: S. Gottschalk et al., OBBTree (1996); the clipping is Sutherland and Hodgman's (1974).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

_MOST = 8


def box_contacts(
    centers: Array, R: Array, half: Array, pairs: Ints, reach: float
) -> tuple[Ints, Array, Array, Array, Ints]:
    """Of pairs (p, 2) of boxes: each contact's pair, point (3,), normal towards the first, gap, and number in it."""
    if not len(pairs):
        return np.zeros(0, int), np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0), np.zeros(0, int)
    i, j = pairs.T
    d = centers[i] - centers[j]
    A, B, a, b = R[i], R[j], half[i], half[j]
    faces = np.concatenate([A.mT, B.mT], 1)  # (p, 6, 3): columns of rotations are the axes of the boxes
    face_gap = _separation(faces, d, A, B, a, b)
    size = np.minimum(a.min(1), b.min(1))
    best = np.argmax(face_gap + 1e-9 * np.arange(6)[::-1] * size[:, None], 1)  # of faces that are as near, the first
    gap = np.take_along_axis(face_gap, best[:, None], 1)[:, 0]
    edges = np.cross(A.mT[:, :, None, :], B.mT[:, None, :, :]).reshape(-1, 9, 3)
    long = np.linalg.norm(edges, axis=-1)
    edges = edges / np.where(long > 1e-6, long, 1.0)[..., None]
    edge_gap = np.where(long > 1e-6, _separation(edges, d, A, B, a, b), -np.inf)
    best_edge = np.argmax(edge_gap, 1)
    crossing = np.take_along_axis(edge_gap, best_edge[:, None], 1)[:, 0]
    by_edge = crossing > np.maximum(gap, 0.9 * gap) + 1e-3 * size
    near = np.maximum(gap, np.where(by_edge, crossing, -np.inf)) < reach
    parts = [_by_faces(np.flatnonzero(near & ~by_edge), best, centers, R, half, pairs, reach)]
    parts.append(_by_edges(np.flatnonzero(near & by_edge), best_edge, edges, crossing, d, centers, R, half, pairs))
    which, points, normal, depth, corner = (np.concatenate(x) for x in zip(*parts, strict=True))
    return which, points, normal, depth, corner


def _separation(axes: Array, d: Array, A: Array, B: Array, a: Array, b: Array) -> Array:
    """(p, k) gaps of boxes along axes (p, k, 3)."""
    reach = np.abs(axes @ A) @ a[..., None] + np.abs(axes @ B) @ b[..., None]
    return np.asarray(np.abs(axes @ d[..., None])[..., 0] - reach[..., 0])


def _by_faces(at: Ints, best: Ints, centers: Array, R: Array, half: Array, pairs: Ints, reach: float) -> Any:
    """Points of the incident faces, clipped by the sides of the reference faces."""
    k = np.arange(len(at))
    swapped = best[at] >= 3  # the face is of the second box
    ref, inc = np.where(swapped, pairs[at, 1], pairs[at, 0]), np.where(swapped, pairs[at, 0], pairs[at, 1])
    axis = best[at] % 3
    apart = centers[inc] - centers[ref]
    Rr, Ri, hr, hi = R[ref], R[inc], half[ref], half[inc]
    sign = np.where(np.einsum("pi,pi->p", Rr[k, :, axis], apart) < 0.0, -1.0, 1.0)
    normal = sign[:, None] * Rr[k, :, axis]  # away from the reference box
    along = np.einsum("pij,pi->pj", Ri, normal)
    face = np.argmax(np.abs(along), 1)
    outward = -np.sign(along[k, face])
    u, w = (face + 1) % 3, (face + 2) % 3
    middle = apart + (outward * hi[k, face])[:, None] * Ri[k, :, face]
    eu, ew = hi[k, u][:, None] * Ri[k, :, u], hi[k, w][:, None] * Ri[k, :, w]
    polygon = np.zeros((len(at), _MOST, 3))
    for number, (su, sw) in enumerate(((1, 1), (-1, 1), (-1, -1), (1, -1))):
        polygon[:, number] = middle + su * eu + sw * ew
    count = np.full(len(at), 4)
    for turn in (1, 2):
        side = (axis + turn) % 3
        for s in (1.0, -1.0):
            plane = s * Rr[k, :, side]
            polygon, count = _clipped(polygon, count, plane, hr[k, side] * (1.0 + 1e-9))
    gap = polygon @ normal[..., None]
    gap = gap[..., 0] - hr[k, axis][:, None]
    there = (np.arange(_MOST) < count[:, None]) & (gap < reach)
    row, corner = np.nonzero(there)
    points = centers[ref[row]] + polygon[row, corner] - 0.5 * gap[row, corner][:, None] * normal[row]
    # The normal points to the first box of the pair.
    towards = np.where(swapped, 1.0, -1.0)[row, None] * normal[row]
    return at[row], points, towards, gap[row, corner], corner


def _clipped(polygon: Array, count: Ints, plane: Array, limit: Array) -> tuple[Array, Ints]:
    """Polygons (p, 8, 3) of `count` corners, without what is beyond plane · x = limit."""
    p = len(polygon)
    out, made = np.zeros_like(polygon), np.zeros(p, int)
    beyond = (polygon @ plane[..., None])[..., 0] - limit[:, None]
    rows = np.arange(p)
    for c in range(_MOST):
        here = c < count
        following = np.where(c + 1 < count, c + 1, 0)
        a, b = polygon[:, c], polygon[rows, following]
        fa, fb = beyond[:, c], beyond[rows, following]
        keep = here & (fa <= 0.0) & (made < _MOST)
        out[rows[keep], made[keep]] = a[keep]
        made += keep
        cross = here & ((fa < 0.0) & (fb > 0.0) | (fa > 0.0) & (fb < 0.0)) & (made < _MOST)
        share = fa / np.where(fa != fb, fa - fb, 1.0)
        out[rows[cross], made[cross]] = (a + share[:, None] * (b - a))[cross]
        made += cross
    return out, made


def _by_edges(
    at: Ints, best: Ints, edges: Array, gap: Array, d: Array, centers: Array, R: Array, half: Array, pairs: Ints
) -> Any:
    """The nearest points of two edges."""
    k = np.arange(len(at))
    i, j = pairs[at].T
    normal = edges[at, best[at]]
    normal = np.where(np.einsum("pi,pi->p", normal, d[at]) < 0.0, -1.0, 1.0)[:, None] * normal  # towards the first
    ea, eb = best[at] // 3, best[at] % 3
    ua, ub = R[i][k, :, ea], R[j][k, :, eb]
    pa, pb = _edge_middle(R[i], half[i], -normal, ea), _edge_middle(R[j], half[j], normal, eb)
    w = centers[i] + pa - centers[j] - pb
    c = np.einsum("pi,pi->p", ua, ub)
    da, db = np.einsum("pi,pi->p", ua, w), np.einsum("pi,pi->p", ub, w)
    s = (c * db - da) / np.maximum(1.0 - c * c, 1e-12)
    point = centers[i] + pa + np.clip(s, -half[i][k, ea], half[i][k, ea])[:, None] * ua
    return at, point - 0.5 * gap[at][:, None] * normal, normal, gap[at], np.full(len(at), 32)


def _edge_middle(R: Array, half: Array, direction: Array, axis: Ints) -> Array:
    """The middle of a box's edge along `axis` that is farthest in a direction, from the centre."""
    local = np.sign(np.einsum("pij,pi->pj", R, direction)) * half
    local[np.arange(len(axis)), axis] = 0.0
    return np.einsum("pij,pj->pi", R, local)
