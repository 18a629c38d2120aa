"""Contacts of convex shapes by their support functions, for pairs without a file of their own.

The cores of balls and capsules are points and segments; a gap is that of the cores minus both radii. Balls and
ellipsoids touch with one point, capsules with two, all others with up to four.
"""

from __future__ import annotations

from typing import Any, Final

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.geometry.approach import Approach
from delassus.geometry.pairs.patches import patch_touches
from delassus.geometry.pairs.registry import pair
from delassus.geometry.pairs.separation import Body, Separation, separation
from delassus.geometry.shapes.distances import norm
from delassus.geometry.shapes.registry import ABSENT, SHAPES, Placed, ShapeKind, Touch

_POINTS: Final = {"sphere": 1, "ellipsoid": 1, "capsule": 2, "cylinder": 4, "box": 4, "mesh": 4}

CONVEX_PAIRS: Final = (
    ("sphere", "mesh"),
    ("capsule", "cylinder"),
    ("capsule", "ellipsoid"),
    ("capsule", "mesh"),
    ("box", "cylinder"),
    ("box", "ellipsoid"),
    ("box", "mesh"),
    ("cylinder", "cylinder"),
    ("cylinder", "ellipsoid"),
    ("cylinder", "mesh"),
    ("ellipsoid", "ellipsoid"),
    ("ellipsoid", "mesh"),
    ("mesh", "mesh"),
)
"""Pairs of shapes by this file."""


def convex_body(kind: ShapeKind, body: Placed) -> Body:
    """A placed shape as a `Body`, the input of `separation`."""
    return Body(lambda n: kind.core_support(body, n), kind.core(body))


def convex_touches(
    kinds: tuple[ShapeKind, ShapeKind], one: Placed, other: Placed, points: int, approach: Approach | None = None
) -> list[Touch]:
    """The contacts of two convex shapes: one point, or a patch of up to two or four points.

    If the shapes cannot come near by `approach`, the contacts are absent; with None, they are always computed.
    """
    first, second = (convex_body(kind, body) for kind, body in zip(kinds, (one, other), strict=True))
    roundings = first.core.rounding, second.core.rounding
    end = None if approach is None else lambda n: approach.reach(n) + sum(roundings)
    deepest = separation(first, second, end)
    size = norm(first.core.extents) + norm(second.core.extents) + sum(roundings)

    def touch_at(deepest: Separation) -> list[Touch]:
        touches = [Touch(*deepest)]
        if points > 1:
            n = deepest.normal
            touches = patch_touches(deepest, kinds[0].facet(one, -n), kinds[1].facet(other, n), points)
        absent = np.abs(deepest.gap) + 4.0 * size
        rounded = []
        for touch in touches:
            gap = np.minimum(touch.gap - sum(roundings), absent)
            rounded.append(touch._replace(gap=gap, point=touch.point - roundings[0] * touch.normal))
        return rounded

    if end is None:
        return touch_at(deepest)
    none = Touch(np.array(ABSENT), deepest.point, deepest.normal, np.array(0.0))

    def near(deepest: Separation) -> tuple[Any, ...]:
        return tuple(Touch(*(np.array(x) for x in touch)) for touch in touch_at(deepest))

    return list(cond(deepest.gap < end(deepest.normal), near, (none,) * points, deepest))


def _enter(one: str, other: str) -> None:
    """Register two shapes."""
    kinds, points = (SHAPES[one], SHAPES[other]), min(_POINTS[one], _POINTS[other])

    def touches_within(first: Placed, second: Placed, approach: Approach) -> list[Touch]:
        return convex_touches(kinds, first, second, points, approach)

    @pair(one, other, points=points, touches_within=touches_within)
    def touches(first: Placed, second: Placed) -> list[Touch]:
        return convex_touches(kinds, first, second, points)


for _one, _other in CONVEX_PAIRS:
    _enter(_one, _other)
