"""Contacts of many bodies: broad phase, narrow phase, and the few candidates that are solved for.

    broad phase     of all pairs of a class those whose bounding boxes in the world's axes come near within the step
    narrow phase    the functions of the table of pairs, on shapes that are gathered by their numbers
    slots           of all points those that may touch within the step, in the order of their candidates

A contact is one of the step where its gap is smaller than what its bodies may close: others have no impulse. Compaction
keeps the order, so that the contacts of two steps are matched by one merge. With more of them than slots the deepest are
solved for.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import map as map_items
from delassus.compiler.tracing.flow.control import scan, while_loop
from delassus.geometry.shapes.registry import Placed, Touch
from delassus.geometry.surfaces import Surface
from delassus.step.bodies.motion import Poses
from delassus.step.bodies.tables import GroundClass, PairClass, ShapeTable, Tables

_HALVINGS: Final = 40
"""Of the interval of gaps, to find the depth above which contacts have slots where these are too few."""


class Slots(NamedTuple):
    """The contacts that are solved for (slots, …).

    Attributes:
        candidate: Numbers, ascending; those of slots without a contact are the last of their class.
        active: 1.0, and 0.0 for slots without a contact.
        gap: [m].
        point: (slots, 3) where bodies touch, in the world [m].
        normal: (slots, 3) from the second body to the first.
        first: The first body.
        second: The second one, or the world.
        entry: Of contacts with the ground, the number of the shape's point in its class.
        overflow: () whether more contacts are near than there are slots.
    """

    candidate: Any
    active: Any
    gap: Any
    point: Any
    normal: Any
    first: Any
    second: Any
    entry: Any
    overflow: Any


class Reach(NamedTuple):
    """How far (bodies + 1,) [m] the points of each body may move in a step, and what counts as near at least () [m]."""

    distance: Any
    floor: Any


def place_shape(shapes: ShapeTable, poses: Poses, k: Any) -> Placed:
    """The k-th shape of a table in the world; k is traced."""
    body = np.take(shapes.body, k)
    R, p = np.take(poses.R, body, axis=0), np.take(poses.p, body, axis=0)
    size = shapes.constant if shapes.constant is not None else np.take(shapes.size, k, axis=0)
    return Placed(R @ np.take(shapes.R, k, axis=0), p + R @ np.take(shapes.p, k, axis=0), size)


def collide_bodies(tables: Tables, poses: Poses, surface: Surface, reach: Reach) -> Slots:
    """All contacts of a step."""
    every = [_ground_slots(some, poses, surface, reach) for some in tables.ground]
    every += [_pair_slots(some, poses, reach) for some in tables.pairs]
    overflow = every[0].overflow
    for slots in every[1:]:
        overflow = overflow | slots.overflow
    joined = [np.concatenate([getattr(slots, name) for slots in every]) for name in Slots._fields[:-1]]
    return Slots(*joined, overflow)


# --- the ground -------------------------------------------------------------------------------------------------------


def ground_touches(some: GroundClass, poses: Poses, surface: Surface, k: Any) -> list[Touch]:
    """Where the k-th shape of a class touches the ground."""
    shape = some.example
    return shape.kind.ground_touches(place_shape(some.shapes, poses, k), surface, shape.on_field)


def _ground_slots(some: GroundClass, poses: Poses, surface: Surface, reach: Reach) -> Slots:
    """Contacts of a class of shapes with the ground."""
    n, points = len(some.shapes.body), some.points

    def touch(k: Any, body: Any) -> tuple[Any, ...]:
        touches = ground_touches(some, poses, surface, k)
        near = np.take(reach.distance, body) + reach.floor
        gap, point, normal = stack_touches(touches)
        return gap, point, normal, gap - near

    numbers = numpy.arange(float(n))
    gap, point, normal, excess = map_items(touch, numbers, some.shapes.body)
    entry = numpy.arange(float(n * points))
    candidate = (some.candidate[:, None] + numpy.arange(float(points))).ravel()
    body = numpy.repeat(some.shapes.body, points)
    gap, point, normal = gap.reshape(-1), point.reshape(-1, 3), normal.reshape(-1, 3)
    index, count, overflow = _compact(excess.reshape(-1), some.slots)

    def fill(slot: Any, at: Any) -> tuple[Any, ...]:
        active = np.where(slot < count, 1.0, 0.0)
        at = np.where(slot < count, at, float(n * points - 1))
        rows = (np.take(x, at, axis=0) for x in (gap, point, normal))
        return np.take(candidate, at), active, *rows, np.take(body, at), np.take(entry, at)

    number, active, gap, point, normal, first, entries = map_items(fill, numpy.arange(float(some.slots)), index)
    second = np.full(some.slots, float(len(poses.inverse_mass) - 1))
    return Slots(number, active, gap, point, normal, first, second, entries, overflow)


# --- pairs ------------------------------------------------------------------------------------------------------------


def pair_touches(some: PairClass, poses: Poses, k: Any) -> list[Touch]:
    """Where the k-th pair of a class touches; normals point to the first shape, points are those of the touching one.

    A contact of the second shape on the first one is told the other way round."""
    first, second = (place_shape(shapes, poses, k) for shapes in (some.first, some.second))
    touches: list[Touch] = []
    for entry, swapped in some.ways:
        if swapped:
            touches += [t._replace(normal=-t.normal) for t in entry.touches(second, first)]
        else:
            touches += entry.touches(first, second)
    return touches


def _pair_slots(some: PairClass, poses: Poses, reach: Reach) -> Slots:
    """Contacts of a class of pairs."""
    boxes = [_bounding_boxes(shapes, poses) for shapes in (some.first, some.second)]

    def apart(c1: Any, e1: Any, c2: Any, e2: Any, one: Any, two: Any) -> Any:
        near = np.take(reach.distance, one) + np.take(reach.distance, two) + reach.floor
        return np.max(np.abs(c1 - c2) - e1 - e2) - near

    excess = map_items(apart, *boxes[0], *boxes[1], some.first.body, some.second.body)
    pairs, near_pairs, lost = _compact(excess, some.pair_slots)

    def touch(slot: Any, k: Any) -> tuple[Any, ...]:
        one, two = np.take(some.first.body, k), np.take(some.second.body, k)
        near = np.take(reach.distance, one) + np.take(reach.distance, two) + reach.floor
        touches = pair_touches(some, poses, k)
        absent = np.where(slot < near_pairs, 0.0, np.inf)
        gap, point, normal = stack_touches(touches)
        candidates = [np.take(own, k) + float(i) for own, n in zip(some.candidates, some.points, strict=True) for i in range(n)]
        return gap, point, normal, gap - near + absent, np.stack(candidates), one, two

    numbers = numpy.arange(float(some.pair_slots))
    gap, point, normal, excess, candidate, one, two = map_items(touch, numbers, pairs)
    points = sum(some.points)
    gap, point, normal = gap.reshape(-1), point.reshape(-1, 3), normal.reshape(-1, 3)
    candidate = candidate.reshape(-1)
    index, count, overflow = _compact(excess.reshape(-1), some.slots)
    last = float(max(own.max() + n - 1 for own, n in zip(some.candidates, some.points, strict=True)))

    def fill(slot: Any, at: Any) -> tuple[Any, ...]:
        active = slot < count
        pair = np.floor((at + 0.5) / float(points))
        rows = (np.take(x, at, axis=0) for x in (gap, point, normal))
        number = np.where(active, np.take(candidate, at), last)
        return number, np.where(active, 1.0, 0.0), *rows, np.take(one, pair), np.take(two, pair), at

    filled = map_items(fill, numpy.arange(float(some.slots)), index)
    return Slots(*filled, overflow | lost)


def _bounding_boxes(shapes: ShapeTable, poses: Poses) -> tuple[Any, Any]:
    """Centres and halves (shapes, 3) of boxes in the world's axes around shapes."""

    def box(k: Any) -> tuple[Any, Any]:
        placed = place_shape(shapes, poses, k)
        return placed.p, np.abs(placed.R) @ np.take(shapes.core, k, axis=0) + np.take(shapes.radius, k)

    return map_items(box, numpy.arange(float(len(shapes.body))))


# --- compaction -------------------------------------------------------------------------------------------------------


def stack_touches(touches: list[Touch]) -> tuple[Any, Any, Any]:
    """Gaps (points,), points and normals (points, 3)."""
    gap, point, normal = (np.stack([np.array(touch[k]) for touch in touches]) for k in range(3))
    return gap, point, normal


def _compact(excess: Any, slots: int) -> tuple[Any, Any, Any]:
    """Where excess (n,) is not positive: the places (slots,) in their order, how many, and whether some were left out.

    If there are more than slots, those with the least excess are taken, by a bound that bisection finds.
    """
    count = _count_below(excess, np.array(0.0))
    overflow = count > float(slots)

    def bisect(low: Any) -> Any:
        def halve(now: Any) -> Any:
            low, high, done = now
            middle = 0.5 * (low + high)
            few = _count_below(excess, middle) <= float(slots)
            return np.where(few, middle, low), np.where(few, high, middle), done + 1.0

        start = (low, np.array(0.0), np.array(0.0))
        return while_loop(lambda now: now[2] < float(_HALVINGS), halve, start, _HALVINGS)[0]

    bound = np.array(0.0)
    if slots < len(excess):
        bound = cond(overflow, lambda: bisect(np.min(excess) - 1e-9), bound)

    def place(carry: Any, item: Any) -> tuple[Any, None]:
        index, count = carry
        k, excess = item
        index = np.add_at(index, np.where(excess <= bound, count, -1.0), k)
        return (index, count + np.where(excess <= bound, 1.0, 0.0)), None

    numbers = numpy.arange(float(len(excess)))
    (index, count), _ = scan(place, (np.zeros(slots), np.array(0.0)), (numbers, excess))
    return index, np.minimum(count, float(slots)), overflow


def _count_below(excess: Any, bound: Any) -> Any:
    """How many (n,) are not above a bound."""
    return scan(lambda sum, x: (sum + np.where(x <= bound, 1.0, 0.0), None), np.array(0.0), excess)[0]


# --- matching ---------------------------------------------------------------------------------------------------------


def match_impulses(tables: Tables, slots: Slots, contact: Any, impulse: Any) -> Any:
    """Impulses (slots, 3) to start from: those (slots, 3) of contacts (slots,) of the step before, by their candidates."""
    parts, start = [], 0
    for some in (*tables.ground, *tables.pairs):
        own = slice(start, start + some.slots)
        parts.append(_merge(slots.candidate[own], slots.active[own], contact[own], impulse[own]))
        start += some.slots
    return np.concatenate(parts)


def _merge(candidate: Any, active: Any, contact: Any, impulse: Any) -> Any:
    """Impulses (n, 3) of candidates (n,) among those (n, 3) of contacts (n,).

    Both lists ascend: what is in both is found in as many rounds as they are long together.
    """
    n = len(contact)

    def advance(carry: Any, _: Any) -> tuple[Any, None]:
        i, j, match = carry
        new, old = np.take(candidate, i), np.take(contact, j)
        inside = (i < float(n) - 0.5) & (j < float(n) - 0.5)
        match = np.add_at(match, np.where((new == old) & inside, i, -1.0), j + 1.0)
        return (i + np.where(new <= old, 1.0, 0.0), j + np.where(new >= old, 1.0, 0.0), match), None

    carry = (np.array(0.0), np.array(0.0), np.zeros(n))
    (_, _, match), _ = scan(advance, carry, length=2 * n)

    def matched(at: Any, active: Any) -> Any:
        return np.where((at > 0.5) & (active > 0.5), np.take(impulse, at - 1.0, axis=0), 0.0)

    return map_items(matched, match, active)
