"""Contacts of many bodies: broad phase, narrow phase, and selection of the contacts to solve for.

    broad phase     the pairs of a class whose axis-aligned rounded boxes come near during the step
    narrow phase    the functions of the table of pairs, on shapes gathered by index
    slots           the points that may touch during the step, in the order of their candidates

A point is a contact if its gap is smaller than the distance by which its bodies may approach; other points would have
no impulse. Contacts fill the first slots, so that loops end at the last contact. They are in the order of candidates,
class by class, so that one merge matches the contacts of two steps. If there are more contacts than slots, the deepest
are selected.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import UNBOUNDED, scan, scan_first, while_loop
from delassus.compiler.tracing.flow.control import map as map_items
from delassus.geometry.shapes.registry import Placed, Touch
from delassus.geometry.surfaces import Surface
from delassus.step.bodies.motion import Poses, numbers_to
from delassus.step.bodies.tables import GroundClass, PairClass, ShapeTable, Tables

_BITS: Final = 48
"""Number of shapes whose near flags are packed into one float, slightly fewer than its bits."""

_HALVINGS: Final = 40
"""Bisections of the interval of gaps, to find the depth from which contacts get slots if there are too few."""


class Slots(NamedTuple):
    """The selected contacts: the first `count` slots.

    Attributes:
        candidate: (slots,) indices of candidates.
        gap: (slots,) [m].
        point: (slots, 3) contact points in the world [m].
        normal: (slots, 3) from the second body to the first.
        first: (slots,) the first body.
        second: (slots,) the second body, or the world.
        count: () number of contacts.
        overflow: () whether there are more contacts than slots.
    """

    candidate: Any
    gap: Any
    point: Any
    normal: Any
    first: Any
    second: Any
    count: Any
    overflow: Any


class PlacedShapes(NamedTuple):
    """All shapes in the world: rotations, how far (shapes,) [m] their points may move in the step, their numbers, and
    centres and halves (shapes, 3) of boxes in the world's axes, whose points are less than `radius` (shapes,) from all
    that the shapes may reach."""

    R: Any
    reach: Any
    number: Any
    p: Any
    half: Any
    radius: Any


def place_shapes(tables: Tables, poses: Poses, reach: Any) -> PlacedShapes:
    """All shapes in the world; reach (bodies + 1,) is the largest displacement of the points of each body [m]."""
    shapes = tables.shapes

    def placed(k: Any) -> tuple[Any, ...]:
        R, p = place_shape(shapes, poses, k)
        near = np.take(reach, np.take(shapes.body, k))
        half = np.abs(R) @ np.take(shapes.core, k, axis=0)
        return R, near, k, p, half, np.take(shapes.radius, k) + near

    return PlacedShapes(*map_items(placed, numbers_to(shapes.n | 1)))


def place_shape(shapes: ShapeTable, poses: Poses, k: Any) -> tuple[Any, Any]:
    """Rotation and center of the k-th shape; k is traced."""
    body = np.take(shapes.body, k)
    R, p = np.take(poses.R, body, axis=0), np.take(poses.p, body, axis=0)
    return R @ np.take(shapes.R, k, axis=0), p + R @ np.take(shapes.p, k, axis=0)


def collide_bodies(tables: Tables, shapes: PlacedShapes, surface: Surface) -> Slots:
    """All contacts of a step."""
    ground = [_ground_points(own, tables, shapes, surface) for own in tables.ground]
    near = [_near_pairs(some, tables, shapes) for some in tables.pairs]
    pairs = [_pair_points(some, tables, shapes, *own[:2]) for some, own in zip(tables.pairs, near, strict=True)]
    sizes = [*(float(len(own.shapes)) for own in tables.ground), *(count for _, count, _ in near)]
    points = [*ground, *pairs]

    def choose(bound: Any) -> tuple[Any, Any]:
        """Places (slots,) of points with no more excess, all classes one after the other, and how many they are."""
        carry, base = (np.zeros(tables.slots), np.array(0.0)), 0
        for own, size in zip(points, sizes, strict=True):
            items, each, _ = own.shape

            def visit(carry: Any, record: Any, base: int = base, items: int = items, size: Any = size) -> Any:
                index, count, k = carry
                for point in range(record.shape[0]):
                    takes = (record[point, 1] <= bound) & (k < size)
                    index = np.add_at(index, np.where(takes, count, -1.0), k + float(base + point * items))
                    count = count + np.where(takes, 1.0, 0.0)
                return (index, count, k + 1.0), None

            (*carry, _), _ = scan_first(size, visit, (*carry, np.array(0.0)), own)
            base += items * each
        return carry[0], carry[1]

    most = float(tables.slots)
    index, count = choose(np.array(0.0))
    overflow = count > most
    if tables.slots < sum(own.shape[0] * own.shape[1] for own in points):
        index, count = cond(overflow, lambda: choose(_bisect(choose, most)), (index, count))
    for _, _, lost in near:
        overflow = overflow | lost
    count = np.minimum(count, most)
    return _fill(tables, points, [own[0] for own in near], index, count, overflow)


def _bisect(choose: Any, most: float) -> Any:
    """Bisection for the largest excess at which there are at most as many points as slots."""

    def halve(current: Any) -> Any:
        low, high, done = current
        middle = 0.5 * (low + high)
        few = choose(middle)[1] <= most
        return np.where(few, middle, low), np.where(few, high, middle), done + 1.0

    start = (np.array(-1e3), np.array(0.0), np.array(0.0))
    return while_loop(lambda current: current[2] < float(_HALVINGS), halve, start, _HALVINGS)[0]


def _fill(tables: Tables, points: list[Any], pairs: list[Any], index: Any, count: Any, overflow: Any) -> Slots:
    """The contacts at the given indices (slots,)."""
    world = float(tables.bodies.n)

    def contact(k: Any, at: Any) -> tuple[Any, Any]:
        base, chosen = 0, ()  # type: int, tuple[Any, ...]
        for n, own in enumerate(points):
            items, each, _ = own.shape
            local = np.clip(at - float(base), 0.0, float(items * each - 1))
            point = np.floor((local + 0.5) / float(items))
            item = local - float(items) * point
            gap, _, x, y, z, u, v, w = np.take(own.reshape(items * each, 8), item * float(each) + point, axis=0)
            if n < len(tables.ground):
                ground = tables.ground[n]
                candidate = np.take(ground.candidate, item) + point
                first, second = np.take(tables.shapes.body, np.take(ground.shapes, item)), np.array(world)
            else:
                some, pair = tables.pairs[n - len(tables.ground)], np.take(pairs[n - len(tables.ground)], item)
                starts = [c for c, m in zip(some.candidates, some.points, strict=True) for _ in range(m)]
                places = numpy.array([float(i) for m in some.points for i in range(m)])
                candidate = np.take(numpy.stack(starts).reshape(-1), point * float(some.n) + pair)
                candidate = candidate + np.take(places, point)
                first, second = (
                    np.take(np.take(tables.shapes.body, x.astype(int)), pair) for x in (some.first, some.second)
                )
            row = (candidate, gap, np.stack([x, y, z]), np.stack([u, v, w]), first, second)
            if not chosen:
                chosen = row
            else:
                chosen = tuple(np.where(at > float(base) - 0.5, a, b) for a, b in zip(row, chosen, strict=True))
            base += items * each
        candidate, gap, point, normal, first, second = chosen
        within = k < count  # beyond, values are those of another contact, or of none
        normal = np.where(within, normal, numpy.array([0.0, 0.0, 1.0]))
        row = (candidate, np.where(within, gap, 0.0), np.where(within, point, 0.0), normal, first, second)
        return k + 1.0, row

    _, rows = scan_first(count, contact, np.array(0.0), index)
    candidate, gap, point, normal, first, second = rows
    return Slots(candidate, gap, point, normal, first, second, count, overflow)


# --- the ground -------------------------------------------------------------------------------------------------------


def ground_touches(own: GroundClass, shapes: ShapeTable, k: Any, R: Any, p: Any, surface: Surface) -> list[Touch]:
    """Contacts of the k-th shape, of a class, with the ground."""
    shape = own.example
    lengths = shape.kind.lengths
    size = shapes.size_of(shapes.size_data(k, lengths), own.constant, lengths)
    return shape.kind.ground_touches(Placed(R, p, size), surface, shape.on_field)


def _ground_points(own: GroundClass, tables: Tables, shapes: PlacedShapes, surface: Surface) -> Any:
    """Records (shapes, points, 8) of a class."""

    def touch(n: Any) -> Any:
        k = np.take(own.shapes, n)
        R, p, near = (np.take(x, k, axis=0) for x in (shapes.R, shapes.p, shapes.reach))
        touches = ground_touches(own, tables.shapes, k, R, p, surface)
        return _records(touches, near + tables.margin)

    return map_items(touch, numbers_to(len(own.shapes) | 1))


# --- pairs ------------------------------------------------------------------------------------------------------------


def pair_touches(some: PairClass, shapes: ShapeTable, first: Any, second: Any) -> list[Touch]:
    """Contacts of two shapes of a class, each with its rotation, center and `size_data`; normals point to the first."""
    one, two = (
        Placed(R, p, shapes.size_of(data, constant, lengths))
        for (R, p, data), (constant, lengths) in zip((first, second), some.constants, strict=True)
    )
    touches: list[Touch] = []
    for entry, swapped in some.ways:
        if swapped:
            touches += [touch._replace(normal=-touch.normal) for touch in entry.touches(two, one)]
        else:
            touches += entry.touches(one, two)
    return touches


def _near_pairs(some: PairClass, tables: Tables, shapes: PlacedShapes) -> tuple[Any, Any, Any]:
    """Indices (pair slots,) of pairs whose rounded boxes overlap, their number, and whether there are more than slots.

    Each shape is compared with all others, side by side in the lanes. The near flags are bits of integers, `_BITS`
    shapes each, from which pairs are extracted one at a time.
    """
    columns = len(shapes.number)
    words = -(-columns // _BITS)
    owners, rows = numpy.unique(some.first, return_inverse=True)
    number = numpy.full((len(owners), columns), -1.0)
    number[rows, some.second.astype(int)] = numpy.arange(float(some.n))
    weight = numpy.array([2.0 ** (_BITS - 1 - k % _BITS) for k in range(columns)])

    def meet(row: Any, _: Any) -> tuple[Any, Any]:
        own = np.take(owners, row)
        c, e = np.take(shapes.p, own, axis=0), np.take(shapes.half, own, axis=0)
        within = np.take(shapes.radius, own) + tables.margin

        def test(k: Any, p: Any, half: Any, radius: Any) -> Any:
            apart, most = np.maximum(np.abs(c - p) - e - half, 0.0), within + radius
            near = apart @ apart <= most * most
            known = np.take(number.reshape(-1), row * float(columns) + k) > -0.5
            return np.where(near & known, np.take(weight, k), 0.0)

        bits = map_items(test, shapes.number, shapes.p, shapes.half, shapes.radius)
        return row + 1.0, np.stack([np.sum(bits[k : k + _BITS]) for k in range(0, columns, _BITS)])

    _, masks = scan(meet, np.array(0.0), length=len(owners))
    masks, last, powers = masks.reshape(-1), float(len(owners) * words), 2.0 ** numpy.arange(float(_BITS + 1))

    def take(carry: Any) -> Any:
        pairs, count, word, mask = carry
        active, empty = word < last - 0.5, mask < 0.5
        bit = np.floor(np.log(np.maximum(mask, 1.0)) * (1.0 / math.log(2.0)) + 1e-9)  # it may be one too large
        bit = bit - np.where(np.take(powers, bit) > mask, 1.0, 0.0)
        row = np.floor((word + 0.5) / float(words))
        column = (word - float(words) * row) * float(_BITS) + (float(_BITS - 1) - bit)
        pair = np.take(number.reshape(-1), row * float(columns) + column)
        pairs = np.add_at(pairs, np.where(active & ~empty, count, -1.0), pair)
        mask = np.where(empty, np.take(masks, word + 1.0), mask - np.take(powers, bit))
        count = count + np.where(active & ~empty, 1.0, 0.0)
        return pairs, count, word + np.where(active & empty, 1.0, 0.0), mask

    start = (np.zeros(some.pair_slots), np.array(0.0), np.array(0.0), masks[0])
    pairs, count, _, _ = while_loop(lambda current: current[2] < last - 0.5, take, start, UNBOUNDED, settles=True)
    most = float(some.pair_slots)
    return pairs, np.minimum(count, most), count > most


def _pair_points(some: PairClass, tables: Tables, shapes: PlacedShapes, pairs: Any, count: Any) -> Any:
    """Records (pair slots, points, 8) of the first pairs of a class."""

    def touch(k: Any, pair: Any) -> tuple[Any, Any]:
        sides: list[Any] = []
        near = tables.margin
        for numbers, (_, lengths) in zip((some.first, some.second), some.constants, strict=True):
            n = np.take(numbers, pair)
            R, p = np.take(shapes.R, n, axis=0), np.take(shapes.p, n, axis=0)
            sides.append((R, p, tables.shapes.size_data(n, lengths)))
            near = np.take(shapes.reach, n) + near
        return k + 1.0, _records(pair_touches(some, tables.shapes, *sides), near)

    return scan_first(count, touch, np.array(0.0), pairs)[1]


def _records(touches: list[Touch], near: Any) -> Any:
    """(points, 8): gap, its excess over the near distance, position, normal of each point.

    They are in the order in which loops gather them: columns apart would be copied for each contact.
    """
    gap, point, normal = stack_touches(touches)
    return np.concatenate([np.stack([gap, gap - near], axis=1), point, normal], axis=1)


def stack_touches(touches: list[Touch]) -> tuple[Any, Any, Any]:
    """Gaps (points,), points and normals (points, 3)."""
    gap, point, normal = (np.stack([np.array(touch[k]) for touch in touches]) for k in range(3))
    return gap, point, normal


# --- matching ---------------------------------------------------------------------------------------------------------


def match_contacts(tables: Tables, slots: Slots, contact: Any) -> Any:
    """(slots,) one plus the index of each contact among those (slots,) of the previous step, 0 for new contacts.

    Both lists are sorted; a merge takes as many iterations as both have elements together.
    """
    n, last = len(contact), float(numpy.argmax(tables.rank))
    before = np.sum(np.where(contact != last, 1.0, 0.0)) + 1.0

    def advance(carry: Any, _: Any) -> tuple[Any, None]:
        i, j, match = carry
        new, old = np.take(tables.rank, np.take(slots.candidate, i)), np.take(tables.rank, np.take(contact, j))
        inside = (i < slots.count - 0.5) & (j < before - 0.5)
        match = np.add_at(match, np.where((new == old) & inside, i, -1.0), j + 1.0)
        further_new, further_old = inside & (new <= old), inside & (new >= old)
        return (i + np.where(further_new, 1.0, 0.0), j + np.where(further_old, 1.0, 0.0), match), None

    carry = (np.array(0.0), np.array(0.0), np.zeros(n))
    (_, _, match), _ = scan_first(slots.count + before, advance, carry, length=2 * n + 1)
    return match
