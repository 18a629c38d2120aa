"""The signed distance of two convex bodies A and B by their support functions alone.

With W the set of all differences a - b, the separation along a unit vector n is s(n) = min over W of n · w, and the
signed distance is its maximum over all n: positive where the bodies are apart, and else the least translation that
parts them, with a minus. Every n gives a lower bound.

Bodies that are apart: the nearest point v of W to the origin has n = v/|v|, by the algorithm of Gilbert,
Johnson and Keerthi (GJK). The nearest point of up to four support points is found, and the support point in the
direction against it is added, until none is nearer.

Bodies that touch: A is moved away along n until they are apart by ε, and v is found there,

    x = n (ε - s(n)),    v = the nearest point of W + x,    n ← v/|v|.

Since |v| ≥ ε, s(n) grows with every round, by up to |v| - ε: a maximization of a convex function over the polar of W by
linear approximation (Frank and Wolfe). On flat parts of W it ends after one round; on parts with a radius of curvature
R at a depth d, it converges by (d + ε)/(R + ε) a round. Support points stay from round to round, as W does, and n is as
exact as rounding is beside ε, however small the gap.

A body that is deep in another one has several maxima. The deep ones are searched by rays from the origin: with x = T u
along a fixed direction u, T decreases until W + x is apart by ε, and n is normal to the part of W that the ray leaves
through. The parts that are nearest to the origin are those that most rays meet. The best eight of them are refined, and
directions around the best one. Points w of W rule out most rays: since s(n) ≤ n · w, no normal within the angle δ of u
is better than s if u · w + δ |w| ≤ s.
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
"""For bodies that are deep in each other."""

_REFINED: Final = 8
"""Of the normals that rays find."""

_NEARBY: Final = 8
"""Starts around the best normal, whose neighbors may be narrower than rays are apart."""

_TILT: Final = 0.15
"""Of these starts [rad], at most."""

_ROUNDING: Final = 1e-13
"""Of the bodies' sizes: distances that do not matter."""

_APART: Final = 1e5
"""Of `_ROUNDING`: from this gap on, n is exact without a shift of A."""

_STANDOFF: Final = 0.3
"""Of the least radius of curvature: ε."""

_SHARE: Final = 0.7
"""Of the possible gain of a round: what may be left of it."""

_RAY_CHANGE: Final = 0.03
"""Of T: the last change along a ray."""

_SHALLOW: Final = 1e-5
"""Of ε: depths at which a maximum is that of the contact."""

_SAME: Final = 0.999
"""The cosine of the angle between normals that are one."""


_STARTS: Final = _RAYS + _REFINED + _NEARBY
"""Of one search at most, after the first."""

_SPACING: Final = 0.35
"""δ [rad], twice the largest angle between any direction and the nearest ray: those beside narrow parts of W count."""

_AROUND: Final = 8
"""Directions around the first normal, at each of the angles [rad] to it, whose points of W rule out rays."""

_PROBE_ANGLES: Final = (0.3, 0.8, 1.5)


class Body(NamedTuple):
    """A convex body: its support function, of a direction (3,), and what else is known of its core."""

    support: Callable[[Any], Any]
    core: Core


class Separation(NamedTuple):
    """The signed distance [m], the point (3,) [m] of the first body, and the normal (3,) from the second one to it."""

    gap: Any
    point: Any
    normal: Any


class _Limits(NamedTuple):
    """Of a search [m]: ε, the distance that does not matter, and the gap along a normal (3,) that ends the search, None
    if none does."""

    standoff: Any
    small: Any
    reach: Callable[[Any], Any] | None

    def ends(self, s: Any, n: Any) -> Any:
        """Whether a separation along a normal (3,) ends the search."""
        return np.array(False) if self.reach is None else s >= self.reach(n)


class _Search(NamedTuple):
    """Three points of W with those of A, the shift x of A, v and its point of A, and the best n."""

    active: Any
    corners: Any
    points: Any
    shift: Any
    nearest: Any
    witness: Any
    stalled: Any
    best: Separation


class _Starts(NamedTuple):
    """The number of the next start, the best maximum, and gaps (8,) and normals (8, 3) that rays found."""

    number: Any
    best: Separation
    gaps: Any
    normals: Any


def separation(one: Body, other: Body, reach: Callable[[Any], Any] | None = None) -> Separation:
    """The signed distance of two convex bodies, the point of the first and the normal.

    The search ends with the first separation along a normal n (3,) that is no less than `reach(n)` [m], a lower bound
    of the distance, after one to three support points where bodies are well apart. None for the distance itself.

    Cost: some 600 operations a support point. Bodies that are apart or touch need 5 to 15 of them, curved ones 20 to
    60; those that are deep in each other a thousand.
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
    return cond(is_deep, lambda best: _search_deep(best, support, limits), nearest, nearest)


def _search_deep(first: Separation, support: Callable[[Any], tuple[Any, Any]], limits: _Limits) -> Separation:
    """The best of the maxima that rays lead to, of those that some points of W leave possible, and of the first one."""
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
    """(n, 3) directions around the third axis, in which points of W are taken."""
    turns = 2.0 * math.pi * (numpy.arange(_AROUND) + 0.25) / _AROUND
    ways = [(math.sin(a) * math.cos(t), math.sin(a) * math.sin(t), math.cos(a)) for a in _PROBE_ANGLES for t in turns]
    return numpy.array(ways)


def _turn(way: Any, n: Any) -> Any:
    """A direction (3,) in axes of which a unit vector (3,) is the third one."""
    sign = np.where(n[2] < 0.0, -1.0, 1.0)
    a = -1.0 / (sign + n[2])
    b = n[0] * n[1] * a
    t1 = np.stack([1.0 + sign * n[0] * n[0] * a, sign * b, -sign * n[0]])
    t2 = np.stack([b, sign + n[1] * n[1] * a, -n[1]])
    return way[0] * t1 + way[1] * t2 + way[2] * n


def _ascend(start: Any, is_ray: Any, support: Callable[[Any], tuple[Any, Any]], limits: _Limits) -> Separation:
    """The local maximum of s(n) that is reached from a unit vector (3,), or n where a ray along it leaves W."""
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
    """Three of four corners (3,): without the first one that has the least weight."""
    lightest = np.min(weights)
    drop, kept = np.array(False), []
    for k in range(3):
        drop = drop | (weights[k] <= lightest)
        kept.append(np.where(drop, corners[k + 1], corners[k]))
    return np.stack(kept)


def _insert(gaps: Any, normals: Any, gap: Any, normal: Any) -> tuple[Any, Any]:
    """The largest gaps (k,) in order with their normals (k, 3), and another one, unless its normal is among them."""
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
