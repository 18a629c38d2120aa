"""The signed distance of two convex bodies A and B by their support functions alone.

With W the set of all differences a - b, the separation along a unit vector n is s(n) = min over W of n · w, and the
signed distance is its maximum over all n: positive where the bodies are apart, and else the least translation that
parts them, with a minus. Every n gives a lower bound.

Bodies that are apart by ε or more: the nearest point v of W to the origin has n = v/|v|, by the algorithm of Gilbert,
Johnson and Keerthi (GJK). The nearest point of up to four support points is found, and the support point in the
direction against it is added, until none is nearer.

Bodies that touch: A is moved away along n until they are apart by ε, and v is found there,

    x = n max(0, ε - s(n)),    v = the nearest point of W + x,    n ← v/|v|.

s(n) grows with every round, since |v| ≥ ε: a maximisation of a convex function over the polar of W by linear
approximation (Frank and Wolfe). On flat parts of W it ends after one round; on parts with a radius of curvature R at a
depth d, it converges by (d + ε)/(R + ε) a round. Support points stay from round to round, as W does, and n is as exact
as rounding is beside ε, however small the gap.

A body that is deep in another one has several maxima: rounds start again from the best of some directions that are
not near to those found before.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import scan, while_loop
from delassus.geometry.pairs.simplex import nearest_weights
from delassus.geometry.shapes.distances import norm
from delassus.geometry.shapes.registry import Core

_SUPPORTS: Final = 200
"""Support points of one maximisation at most."""

_STARTS: Final = 4
"""Of maximisations, for bodies that are deep in each other."""

_ROUNDING: Final = 1e-14
"""Of the bodies' sizes: distances that do not matter."""

_TURN: Final = 1e-9
"""[rad] by which n changes in the last round."""

_SHALLOW: Final = 1e-5
"""Of the standoff: depths at which a maximum is that of the contact."""

_SLENDER: Final = 0.05
"""Of the longest extent: the least one that directions take account of."""

_TINY: Final = 1e-12
"""[m], for cores that are points."""

_CUBE: Final = numpy.array([u for u in itertools.product((-1.0, 0.0, 1.0), repeat=3) if any(u)])
"""(26, 3) directions to the faces, edges and corners of a cube."""

_NEAR: Final = 0.8
"""The cosine of the angle within which a direction leads to a maximum that is known."""


class Body(NamedTuple):
    """A convex body for the search: its support function (direction (3,) to point (3,)), what is known of its core, its
    axes (3, 3) as columns, and normals (k, 3) of its faces in these axes."""

    support: Callable[[Any], Any]
    core: Core
    axes: Any
    normals: Any = None

    def direction(self, u: Any) -> Any:
        """A unit vector (3,) in the world for one of a cube: normal to the body squeezed to a cube."""
        extents = self.core.extents
        local = u / (extents + _SLENDER * np.max(extents) + _TINY)
        return self.axes @ (local / norm(local))


class Separation(NamedTuple):
    """The signed distance [m], the normal (3,) from the second body to the first, and the point (3,) of the first."""

    gap: Any
    normal: Any
    point: Any


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


def separation(one: Body, other: Body) -> Separation:
    """The signed distance of two convex bodies, the normal and the point of the first.

    Cost: some 800 operations a support point, of which bodies that are apart need 4 to 20 and those that touch 10 to 40,
    curved ones more.
    """
    away = one.core.center - other.core.center
    far = norm(away)
    first = np.where(far > 0.0, away / np.where(far > 0.0, far, 1.0), numpy.array([0.0, 0.0, 1.0]))
    standoff = 0.1 * np.minimum(one.core.curvature, other.core.curvature)
    scale = norm(one.core.extents) + norm(other.core.extents) + far

    def support(n: Any) -> tuple[Any, Any]:
        point = one.support(-n)
        return point, point - other.support(n)

    def is_deep(search: tuple[Any, Any, Separation]) -> Any:
        start, _, best = search
        return (start < 0.5) | ((start < _STARTS - 0.5) & (best.gap < -_SHALLOW * standoff))

    def restart(search: tuple[Any, Any, Separation]) -> tuple[Any, Any, Separation]:
        start, known, best = search
        n = cond(start > 0.5, lambda known: _best_direction(one, other, support, known), first, known)
        last = _ascend(n, support, standoff, scale)
        better = last.gap > best.gap
        kept = Separation(*(np.where(better, new, old) for new, old in zip(last, best, strict=True)))
        known = np.where((numpy.arange(float(_STARTS)) == start)[:, None], last.normal, known)
        return start + 1.0, known, kept

    none = Separation(np.array(-1e300), first, one.core.center)
    found = while_loop(is_deep, restart, (np.array(0.0), np.zeros((_STARTS, 3)), none), _STARTS)
    return Separation(*found[2])


def _best_direction(one: Body, other: Body, support: Callable[[Any], tuple[Any, Any]], known: Any) -> Any:
    """Of the bodies' directions the one with the largest separation that is not near a normal of `known` (k, 3)."""

    def compare(best: tuple[Any, Any], n: Any) -> tuple[Any, Any]:
        s = n @ support(n)[1]
        is_known = np.max(known @ n) > _NEAR
        better = ~is_known & (s > best[0])
        return np.where(better, s, best[0]), np.where(better, n, best[1])

    best = (np.array(-1e300), -known[0])
    for body, side in ((one, -1.0), (other, 1.0)):
        best, _ = scan(lambda best, u, body=body: (compare(best, body.direction(u)), None), best, _CUBE)
        if body.normals is not None:
            best, _ = scan(
                lambda best, m, body=body, side=side: (compare(best, side * (body.axes @ m)), None), best, body.normals
            )
    return best[1]


def _ascend(n: Any, support: Callable[[Any], tuple[Any, Any]], standoff: Any, scale: Any) -> Separation:
    """The local maximum of s(n) that is reached from a unit vector (3,)."""
    small = _ROUNDING * scale
    point, w = support(n)
    s = n @ w
    shift = n * np.maximum(standoff - s, 0.0)
    begin = _Search(
        np.array(True),
        np.stack([w, w, w]),
        np.stack([point, point, point]),
        shift,
        w + shift,
        point,
        np.array(False),
        Separation(s, n, point),
    )

    def refine(last: _Search) -> _Search:
        length = norm(last.nearest)
        n = last.nearest / length
        point, w = support(n)
        s = n @ w
        best = last.best
        better = s > best.gap
        best = Separation(*(np.where(better, a, b) for a, b in zip((s, n, last.witness), best, strict=True)))
        is_nearest = last.stalled | (length - (s + n @ last.shift) <= small)
        shift = np.where(is_nearest, n * np.maximum(standoff - s, 0.0), last.shift)
        change = norm(shift - last.shift)
        done = is_nearest & (change <= _TURN * (norm(shift) + standoff))
        corners, points = [*last.corners, w], [*last.points, point]
        weights = nearest_weights(corners, -shift)
        nearest = shift + sum(weights[k] * corners[k] for k in range(4))
        witness = sum(weights[k] * points[k] for k in range(4))
        stalled = ~is_nearest & (nearest @ nearest >= (1.0 - 1e-15) * (length * length))
        corners, points = _drop_lightest(weights, corners), _drop_lightest(weights, points)
        return _Search(~done, corners, points, shift, nearest, witness, stalled, best)

    return while_loop(lambda last: last.active, refine, begin, _SUPPORTS).best


def _drop_lightest(weights: Any, corners: list[Any]) -> Any:
    """Three of four corners (3,): without the first one that has the least weight."""
    lightest = np.min(weights)
    drop, kept = np.array(False), []
    for k in range(3):
        drop = drop | (weights[k] <= lightest)
        kept.append(np.where(drop, corners[k + 1], corners[k]))
    return np.stack(kept)
