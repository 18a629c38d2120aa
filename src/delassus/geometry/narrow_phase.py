"""The narrow phase of classes of pairs: a loop over the nearest pairs, with shapes gathered by their numbers.

The nearest pairs are those with the smallest bounds of the broad phase, in the order of its blocks. A pair that is not
near is left out, and so is a class if all of its pairs are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy
from numpy.typing import NDArray

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import map as map_stacks
from delassus.geometry.approach import Approach
from delassus.geometry.bounds import bounding_capsule
from delassus.geometry.broad_phase import PairTables, WorldShapes, pair_bounds
from delassus.geometry.candidates import Shape
from delassus.geometry.classes import PairClass
from delassus.geometry.hulls.tables import Hull, TableRow, as_hull
from delassus.geometry.nearest import nearest
from delassus.geometry.shapes.registry import ABSENT, Placed

_UP: Final = numpy.array([0.0, 0.0, 1.0])


class Places(NamedTuple):
    """Places of pairs: gaps (n,) [m], points and normals (n, 3) in the world, and their numbers (n,) in the class.

    `crowded` if more pairs are near than were looked at.
    """

    gap: Any
    point: Any
    normal: Any
    number: Any
    crowded: Any


class _Near(NamedTuple):
    """Of the pairs that are looked at: gaps (pairs, points), points and normals (pairs, points, 3), their numbers."""

    gap: Any
    point: Any
    normal: Any
    pair: Any
    crowded: Any


def class_places(tables: PairTables, number: int, one: PairClass, placed: WorldShapes) -> Places:
    """Where the nearest pairs of a class, the one of this number, touch."""
    narrow = _narrow_phase(tables, one, placed, number)
    bounds, pairs = pair_bounds(tables, number, one, placed).reshape(-1), tables.blocks[number].reshape(-1)
    first = _shape_numbers(tables.shapes, one)[0]
    count, points = one.slots, one.points

    def look(bounds: Any) -> _Near:
        places, following = nearest(bounds, count)
        blocks = _near_first(places, np.take(bounds, places), len(pairs))

        def look_at(pair: Any, bound: Any) -> tuple[Any, Any, Any]:
            return cond(
                bound < 0.0, narrow, _absent(np.take(placed.center, np.take(first, pair), axis=0), points), pair
            )

        near = np.take(pairs * 1.0, blocks)
        gap, point, normal = map_stacks(look_at, near, np.take(bounds, blocks))
        return _Near(gap, point, normal, near, following < 0.0)

    centers = placed.center[first[:count].astype(int)]
    gap, point, normal = _absent(centers, points)
    other = _Near(gap, point, normal, numpy.arange(float(count)), np.array(False))
    return _flat(cond(np.min(bounds) < 0.0, look, other, bounds), points)


def _near_first(places: Any, bounds: Any, n: int) -> Any:
    """Places (k,) below n in ascending order, those with bounds below zero first.

    States that are computed together skip a pair of the loop only if none of them is near there: where near pairs came
    at places of their own, eight states of a quadruped looked at as many pairs as all of them had together.
    """
    key = np.sort(np.where(bounds < 0.0, places, places + float(n)))
    return np.where(key < float(n), key, key - float(n))


def all_places(tables: PairTables, one: PairClass, placed: WorldShapes) -> Places:
    """Where all pairs of a class touch, however far they are."""
    narrow, pairs = _narrow_phase(tables, one, placed), numpy.arange(float(len(one.pairs)))
    gap, point, normal = map_stacks(narrow, pairs)
    return _flat(_Near(gap, point, normal, pairs, np.array(False)), one.points)


def _absent(centers: Any, points: int) -> tuple[Any, Any, Any]:
    """Places of pairs that are left out: at centers (…, 3) of their shapes, where they move no faster than these."""
    shape = (*centers.shape[:-1], points)
    point = np.zeros((*shape, 3)) + centers[..., None, :]
    return np.full(shape, ABSENT), point, np.zeros((*shape, 3)) + _UP


def _flat(near: _Near, points: int) -> Places:
    number = np.array(near.pair)[:, None] * float(points) + numpy.arange(float(points))
    return Places(
        near.gap.reshape(-1), near.point.reshape(-1, 3), near.normal.reshape(-1, 3), number.reshape(-1), near.crowded
    )


def _narrow_phase(
    tables: PairTables, one: PairClass, placed: WorldShapes, number: int | None = None
) -> Callable[[Any], tuple[Any, ...]]:
    """A function of the number of a pair: gaps (points,), points and normals (points, 3).

    With the number of the class, shapes that are not near may have absent touches.
    """
    shapes = tables.shapes
    numbers = _shape_numbers(shapes, one)
    sizes = [_size_table(shapes, frozenset(column)) for column in zip(*one.pairs, strict=True)]

    def body(number: Any, size: Callable[[Any], Any]) -> Placed:
        return Placed(np.take(placed.R, number, axis=0), np.take(placed.p, number, axis=0), size(number))

    def approach(pair: Any) -> Approach:
        """How the first shape of a pair may approach the second one."""
        shape = np.take(numbers[0], pair)
        center, half = np.take(placed.center, shape, axis=0), np.take(placed.half, shape, axis=0)
        radii = numpy.array([bounding_capsule(shape).radius for shape in shapes])
        capsule = center, half, np.take(radii, shape)
        bodies, sign = tables.pair_bodies[number or 0], tables.signs[number or 0]
        return placed.approach(capsule, np.take(bodies, pair), np.take(sign, pair))

    def narrow(pair: Any) -> tuple[Any, Any, Any]:
        bodies = [body(np.take(column, pair), size) for column, size in zip(numbers, sizes, strict=True)]
        touches = []
        for collision in one.collisions:
            is_reversed = collision.shape != one.pairs[0][0]
            first, second = reversed(bodies) if is_reversed else bodies
            entry = collision.pair
            if number is None or entry.touches_within is None:
                touches += entry.touches(first, second)
            else:
                motion = approach(pair)
                touches += entry.touches_within(first, second, motion.reversed() if is_reversed else motion)
        gap, point, normal = (np.stack([np.array(touch[k]) for touch in touches]) for k in range(3))
        return gap, point, normal

    return narrow


def _shape_numbers(shapes: Sequence[Shape], one: PairClass) -> list[NDArray[numpy.float64]]:
    """Of all pairs (n,) the numbers of their first shapes, and of their second ones."""
    index = {shape: float(k) for k, shape in enumerate(shapes)}
    return [numpy.array([index[pair[k]] for pair in one.pairs]) for k in range(2)]


def _size_table(shapes: Sequence[Shape], used: frozenset[Shape]) -> Callable[[Any], Any]:
    """The size of a shape by its number, one of those that are used; hulls have as many rows as the largest one."""
    kind = next(iter(used)).kind
    if kind.name != "mesh":
        table = _pad([numpy.array(shape.size) if shape in used else None for shape in shapes])
        return lambda k: np.take(table, k, axis=0)
    hulls = [as_hull(shape.size) if shape in used else None for shape in shapes]
    vertices, normals, quads = (_pad([hull and hull[part] for hull in hulls]) for part in range(3))
    return lambda k: Hull(np.take(vertices, k, axis=0), TableRow(normals, k), TableRow(quads, k))


def _pad(arrays: Sequence[Any]) -> NDArray[numpy.float64]:
    """Arrays (n, …) as one, with the last row of each repeated, which changes no hull; zeros where there is none."""
    most = max(len(x) for x in arrays if x is not None)
    some = next(x for x in arrays if x is not None)
    table = numpy.zeros((len(arrays), most, *some.shape[1:]))
    for k, x in enumerate(arrays):
        if x is not None:
            table[k] = x[-1]
            table[k, : len(x)] = x
    return table
