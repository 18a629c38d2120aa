"""The signed distance of two convex bodies A and B, from their support functions alone.

Let W be the set of all differences a - b. The separation along a unit vector n is s(n) = min over w in W of n · w, and
the signed distance is the maximum of s: positive if the bodies are apart, else minus the length of the shortest
translation that separates them. Every n gives a lower bound.

Separated bodies: the point v of W nearest to the origin gives n = v/|v|. The algorithm of Gilbert, Johnson and Keerthi
(GJK) finds it: it computes the nearest point of the hull of up to four support points, adds the support point in the
opposite direction, and ends when the distance no longer decreases.

Touching bodies: A is translated along n until the distance is ε, and GJK is applied,

    x = n (ε - s(n)),    v = the point of W + x nearest to the origin,    n ← v/|v|.

Since |v| ≥ ε, s(n) grows in every iteration, by up to |v| - ε. This is the Frank–Wolfe method: it maximizes a convex
function over the polar of W by linear approximation. If the contact is on a flat part of W, it ends after one
iteration; with a radius of curvature R and a depth d, its error shrinks by (d + ε)/(R + ε) per iteration. Support
points are kept between iterations. The accuracy of n is that of rounding relative to ε, however small the gap is.

Shallow penetrations: a maximum of depth d is the global one if W contains the ball of radius d around the origin. Its
touching point w, a point c far inside and the support points u along a few directions beside n span a polyhedron in W,
and the planes of its faces (w, u, u') and (c, u, u') tell whether the ball is in it.

For deep penetrations, s has several local maxima. Rays from the origin search for them: with x = T u for a fixed
direction u, T decreases until W + x has the distance ε, and n is the normal of W where the ray leaves it. Most rays
leave through the parts of W nearest to the origin. The eight best normals are refined, and further directions around
the best one. Points w of W exclude most rays in advance: since s(n) ≤ n · w, no normal within the angle δ of u is
better than s if u · w + δ |w| ≤ s.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import map as map_stacks
from delassus.compiler.tracing.flow.control import scan, while_loop
from delassus.geometry.pairs.simplex import nearest_weights
from delassus.geometry.shapes.distances import norm
from delassus.geometry.shapes.registry import Core

_SUPPORTS: Final = 500
"""Support points of one maximization at most."""

_RAYS: Final = 256
"""Rays for deep penetrations."""

_REFINED: Final = 8
"""Number of normals found by rays that are refined."""

_NEARBY: Final = 8
"""Additional starts around the best normal: its basin may be narrower than the spacing of the rays."""

_TILT: Final = 0.15
"""Largest angle [rad] of these starts to the best normal."""

_ROUNDING: Final = 1e-13
"""Negligible distance, as a fraction of the size of the bodies."""

_APART: Final = 1e5
"""Gap, in units of `_ROUNDING`, above which n is accurate without a translation of A."""

_STANDOFF: Final = 0.3
"""ε as a fraction of the smallest radius of curvature."""

_SHARE: Final = 0.7
"""Fraction of the possible gain of an iteration that may remain."""

_RAY_CHANGE: Final = 0.03
"""Relative change of T at which a ray ends."""

_SHALLOW: Final = 1e-5
"""Depth, as a fraction of ε, up to which the first maximum is the global one."""

_PROOF_TILT: Final = (1e-3, 1.0, 0.05)
"""Tangent of the angle to n of the directions whose support points prove that a maximum is the global one: the least,
as a multiple of the depth in units of ε, and the largest. Near n they stay on the faces that touch, farther away they
enclose larger balls."""

_SIDEWAYS: Final = numpy.array([(math.cos(0.25 * math.pi * k), math.sin(0.25 * math.pi * k), 0.0) for k in range(8)])
"""These directions, in axes whose third one is n."""

_PROOF_LOSS: Final = 1e-3
"""Fraction of the depth by which the proven ball may be smaller, up to `_SHALLOW` of ε: the error of the depth."""

_SAME: Final = 0.999
"""Cosine of the angle below which two normals count as one."""


_STARTS: Final = _RAYS + _REFINED + _NEARBY
"""Largest number of further starts of a search."""

_SPACING: Final = 0.35
"""δ [rad], twice the largest angle between any direction and the nearest ray, so that rays next to narrow parts of W
count."""

_AROUND: Final = 8
"""Number of directions at each angle around the first normal whose support points exclude rays."""

_PROBE_ANGLES: Final = (0.3, 0.8, 1.5)


class Body(NamedTuple):
    """A convex body: its support function, which takes a direction (3,), and properties of its core."""

    support: Callable[[Any], Any]
    core: Core


class Separation(NamedTuple):
    """The signed distance [m], the contact point (3,) [m] on the first body, and the normal (3,) from the second body
    to it."""

    gap: Any
    point: Any
    normal: Any


class _Limits(NamedTuple):
    """Limits of a search [m]: ε, the negligible distance, and the gap along a normal (3,) that ends the search; None
    computes the distance."""

    standoff: Any
    small: Any
    reach: Callable[[Any], Any] | None

    def ends(self, s: Any, n: Any) -> Any:
        """Whether a separation along a normal (3,) ends the search."""
        return np.array(False) if self.reach is None else s >= self.reach(n)


class _Search(NamedTuple):
    """Three points of W with their points of A, the translation x of A, v and its point of A, and the best n."""

    active: Any
    corners: Any
    points: Any
    shift: Any
    nearest: Any
    witness: Any
    stalled: Any
    best: Separation


class _Starts(NamedTuple):
    """The index of the next start, the best maximum, and gaps (8,) and normals (8, 3) found by rays."""

    number: Any
    best: Separation
    gaps: Any
    normals: Any


def separation(one: Body, other: Body, reach: Callable[[Any], Any] | None = None) -> Separation:
    """The signed distance of two convex bodies, the contact point on the first, and the normal.

    If `reach` is given, the search ends at the first normal n (3,) along which the bodies are at least `reach(n)` [m]
    apart, and the result is that lower bound, after one to three support points. None computes the distance itself.

    Cost: about 600 operations per support point. Bodies that are apart or touch need 5 to 15 of them, curved ones 20 to
    60, deep penetrations about a thousand.
    """
    away = one.core.center - other.core.center
    far = norm(away)
    first = np.where(far > 0.0, away / np.where(far > 0.0, far, 1.0), numpy.array([0.0, 0.0, 1.0]))
    standoff = _STANDOFF * np.minimum(one.core.curvature, other.core.curvature)
    small = _ROUNDING * (norm(one.core.extents) + norm(other.core.extents) + far)

    def support(n: Any) -> tuple[Any, Any]:
        point = one.support(-n)
        return point, point - other.support(n)

    limits = _Limits(standoff, small, reach)
    nearest = _ascend(first, np.array(False), support, limits)
    is_deep = nearest.gap < -_SHALLOW * standoff
    is_open = cond(is_deep, lambda best: ~_contains_ball(best, away, support, standoff), is_deep, nearest)
    return cond(is_open, lambda best: _search_deep(best, support, limits), nearest, nearest)


def _contains_ball(best: Separation, inside: Any, support: Callable[[Any], tuple[Any, Any]], standoff: Any) -> Any:
    """Whether W contains the ball around the origin that touches it at a maximum, so that this is the global one.

    `inside` (3,) is a point of W. Where the faces (w, u, u') and (c, u, u') of the tetrahedra (w, c, u, u') around the
    axis w c form a closed surface, the intersection of their half-spaces is within it. False if that is not known.
    """
    n, depth = best.normal, -best.gap
    touching = best.gap * n
    low, slope, high = _PROOF_TILT
    tilt = np.clip(slope * depth / standoff, low, high)
    corners = map_stacks(lambda way: support(n + tilt * _turn(way, n))[1], _SIDEWAYS)
    least = depth - np.minimum(_PROOF_LOSS * depth, _SHALLOW * standoff)
    following = np.concatenate([corners[1:], corners[:1]])

    def visit(last: tuple[Any, Any], pair: tuple[Any, Any]) -> tuple[tuple[Any, Any], None]:
        contained, faces = last
        u, after = pair
        differ = np.any(u != after)
        holds = np.cross(u - touching, after - touching) @ (inside - touching) > 0.0
        for apex, opposite in ((touching, inside), (inside, touching)):
            normal = np.cross(u - apex, after - apex)
            height = -(normal @ apex)  # of the origin, on the side of the opposite corner
            is_far = height * height >= least * least * (normal @ normal)
            holds = holds & (height * (normal @ (opposite - apex)) > 0.0) & is_far
        return (contained & (holds | ~differ), faces | differ), None

    (contained, faces), _ = scan(visit, (np.array(True), np.array(False)), (corners, following))
    return contained & faces


def _search_deep(first: Separation, support: Callable[[Any], tuple[Any, Any]], limits: _Limits) -> Separation:
    """The best of the first maximum and of those found by rays, without rays that points of W exclude."""
    probes = map_stacks(lambda way: support(_turn(way, first.normal))[1], _probes())

    def is_possible(n: Any, gap: Any) -> Any:
        """Whether a normal within the rays' spacing of n may have a larger gap: s(n) ≤ n · w for all points w of W."""

        def visit(least: Any, w: Any) -> tuple[Any, None]:
            return np.minimum(least, n @ w + _SPACING * norm(w)), None

        return scan(visit, np.array(numpy.inf), probes)[0] > gap

    def is_open(starts: _Starts) -> Any:
        return (starts.best.gap < -_SHALLOW * limits.standoff) & (starts.number < _STARTS - 0.5)

    def start(last: _Starts) -> _Starts:
        is_ray = last.number < _RAYS - 0.5
        is_nearby = last.number > _RAYS + _REFINED - 0.5
        refined = last.number - _RAYS
        ray = np.take(_directions(), last.number, axis=0)
        arm = np.take(_directions(), 31.0 * (refined - _REFINED + 1.0), axis=0)
        n = np.where(is_ray, ray, np.take(last.normals, refined, axis=0))
        n = np.where(is_nearby, last.best.normal + _TILT * arm, n)
        is_known = is_nearby | (np.take(last.gaps, refined) > -1e299)
        wanted = cond(is_ray, lambda ray: is_possible(ray, last.best.gap), is_known, ray)

        def climb(n: Any, last: _Starts) -> _Starts:
            new = _ascend(n / norm(n), is_ray, support, limits._replace(reach=None))
            best = _choose(new.gap > last.best.gap, new, last.best)
            gaps, normals = _insert(last.gaps, last.normals, np.where(is_ray, new.gap, -1e300), new.normal)
            return _Starts(last.number, best, gaps, normals)

        following = cond(wanted, climb, last, n, last)
        return following._replace(number=last.number + 1.0)

    begin = _Starts(np.array(0.0), first, np.full(_REFINED, -1e300), np.stack([first.normal] * _REFINED))
    return while_loop(is_open, start, begin, _STARTS).best


def _probes() -> Any:
    """(n, 3) directions around the third axis, whose support points are used to exclude rays."""
    turns = 2.0 * math.pi * (numpy.arange(_AROUND) + 0.25) / _AROUND
    ways = [(math.sin(a) * math.cos(t), math.sin(a) * math.sin(t), math.cos(a)) for a in _PROBE_ANGLES for t in turns]
    return numpy.array(ways)


def _turn(way: Any, n: Any) -> Any:
    """Rotate a direction (3,) into axes whose third axis is a unit vector (3,)."""
    sign = np.where(n[2] < 0.0, -1.0, 1.0)
    a = -1.0 / (sign + n[2])
    b = n[0] * n[1] * a
    t1 = np.stack([1.0 + sign * n[0] * n[0] * a, sign * b, -sign * n[0]])
    t2 = np.stack([b, sign + n[1] * n[1] * a, -n[1]])
    return way[0] * t1 + way[1] * t2 + way[2] * n


def _ascend(start: Any, is_ray: Any, support: Callable[[Any], tuple[Any, Any]], limits: _Limits) -> Separation:
    """The local maximum of s reached from a unit vector (3,), or the normal n at which a ray along it leaves W."""
    standoff, small, _ = limits
    point, w = support(start)
    s = start @ w
    least_gap = _APART * small
    shift = start * np.where(s > least_gap, 0.0, standoff - s)
    never = np.array(False)
    best = Separation(s, point, start)
    active = ~limits.ends(s, start)
    begin = _Search(active, np.stack([w] * 3), np.stack([point] * 3), shift, w + shift, point, never, best)

    def refine(last: _Search) -> _Search:
        length = norm(last.nearest)
        n = last.nearest / length
        point, w = support(n)
        s = n @ w
        ends = limits.ends(s, n)
        best = _choose((s > last.best.gap) | ends, Separation(s, last.witness, n), last.best)
        is_shifted = np.sum(np.abs(last.shift)) > 0.0
        gain = np.where(is_shifted, length - standoff, 0.0)
        is_nearest = last.stalled | (length - (s + n @ last.shift) <= np.maximum(small, _SHARE * gain))
        is_apart = s > least_gap
        apart = np.where(is_apart, 0.0, standoff - s)
        along = np.where(is_ray, start / np.maximum(n @ start, 0.1), n)
        shift = np.where(is_nearest, apart * along, last.shift)
        least_gain = np.where(is_ray, _RAY_CHANGE * norm(shift), small)
        done = is_nearest & (gain <= least_gain) & (is_shifted != is_apart)
        corners, points = [*last.corners, w], [*last.points, point]
        weights = nearest_weights(corners, -shift)
        nearest = shift + sum(weights[k] * corners[k] for k in range(4))
        witness = sum(weights[k] * points[k] for k in range(4))
        stalled = ~is_nearest & (nearest @ nearest >= (1.0 - 1e-15) * (length * length))
        corners, points = _drop_lightest(weights, corners), _drop_lightest(weights, points)
        active = ~done & ~ends
        return _Search(active, corners, points, shift, nearest, witness, stalled, best)

    return while_loop(lambda last: last.active, refine, begin, _SUPPORTS).best


def _choose(condition: Any, new: Separation, old: Separation) -> Separation:
    return Separation(*(np.where(condition, a, b) for a, b in zip(new, old, strict=True)))


def _drop_lightest(weights: Any, corners: list[Any]) -> Any:
    """Three of four vertices (3,): drops the first one with the least weight."""
    lightest = np.min(weights)
    drop, kept = np.array(False), []
    for k in range(3):
        drop = drop | (weights[k] <= lightest)
        kept.append(np.where(drop, corners[k + 1], corners[k]))
    return np.stack(kept)


def _insert(gaps: Any, normals: Any, gap: Any, normal: Any) -> tuple[Any, Any]:
    """Insert a gap and its normal into the sorted list of the largest gaps (k,), unless the normal is in it."""
    gap = np.where(np.any((normals @ normal > _SAME) & (gaps >= gap)), -1e300, gap)
    kept = []
    for k in range(_REFINED):
        larger = gap > gaps[k]
        kept.append((np.where(larger, gap, gaps[k]), np.where(larger, normal, normals[k])))
        gap, normal = np.where(larger, gaps[k], gap), np.where(larger, normals[k], normal)
    return np.stack([g for g, _ in kept]), np.stack([n for _, n in kept])


def _directions() -> Any:
    """(rays, 3) unit vectors on a spiral over the sphere."""
    k = numpy.arange(_RAYS) + 0.5
    z, turn = 1.0 - 2.0 * k / _RAYS, math.pi * (1.0 + math.sqrt(5.0)) * k
    r = numpy.sqrt(1.0 - z * z)
    return numpy.stack([r * numpy.cos(turn), r * numpy.sin(turn), z], 1)
