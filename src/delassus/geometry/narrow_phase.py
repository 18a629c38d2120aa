"""The narrow phase: a loop over the nearest pairs of a class, whose shapes are gathered by index.

The nearest pairs are those with the smallest broad-phase bounds. Pairs that are not near are skipped, and so is a class
without near pairs.
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
    """Contacts of pairs: gaps (n,) [m], points and normals (n, 3) in the world, and their indices (n,) in the class.

    `crowded` is true if more pairs are near than are examined.
    """

    gap: Any
    point: Any
    normal: Any
    number: Any
    crowded: Any


class _Near(NamedTuple):
    """The examined pairs: gaps (pairs, points), points and normals (pairs, points, 3), and their indices."""

    gap: Any
    point: Any
    normal: Any
    pair: Any
    crowded: Any


def class_places(tables: PairTables, number: int, one: PairClass, placed: WorldShapes) -> Places:
    """Contacts of the nearest pairs of a class, given by its index."""
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
    """Indices (k,) below n, those with negative bounds first, each group in ascending order.

    The states of a SIMD vector skip a pair only if it is near in none of them. With the near pairs at the same
    positions of the loop, eight states of a quadruped examine no more pairs than the state with the most; without this
    order, they examined as many as all eight together.
    """
    key = np.sort(np.where(bounds < 0.0, places, places + float(n)))
    return np.where(key < float(n), key, key - float(n))


def all_places(tables: PairTables, one: PairClass, placed: WorldShapes) -> Places:
    """Contacts of all pairs of a class, at any distance."""
    narrow, pairs = _narrow_phase(tables, one, placed), numpy.arange(float(len(one.pairs)))
    gap, point, normal = map_stacks(narrow, pairs)
    return _flat(_Near(gap, point, normal, pairs, np.array(False)), one.points)


def _absent(centers: Any, points: int) -> tuple[Any, Any, Any]:
    """Placeholders of skipped pairs, at the centers (…, 3) of their shapes."""
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
    """A function that maps the index of a pair to gaps (points,), points and normals (points, 3).

    Given the index of the class, shapes that are not near may be skipped.
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
    """Indices (n,) of the first and of the second shapes of all pairs."""
    index = {shape: float(k) for k, shape in enumerate(shapes)}
    return [numpy.array([index[pair[k]] for pair in one.pairs]) for k in range(2)]


def _size_table(shapes: Sequence[Shape], used: frozenset[Shape]) -> Callable[[Any], Any]:
    """The size of a shape by its index; hulls are padded to as many rows as the largest one."""
    kind = next(iter(used)).kind
    if kind.name != "mesh":
        table = _pad([numpy.array(shape.size) if shape in used else None for shape in shapes])
        return lambda k: np.take(table, k, axis=0)
    hulls = [as_hull(shape.size) if shape in used else None for shape in shapes]
    vertices, normals, quads = (_pad([hull and hull[part] for hull in hulls]) for part in range(3))
    summaries = _pad([hull and numpy.stack([*hull.bounds(), hull.center()]) for hull in hulls])

    def row(k: Any) -> Hull:
        faces = TableRow(normals, k), TableRow(quads, k)
        return Hull(np.take(vertices, k, axis=0), *faces, np.take(summaries, k, axis=0))

    return row


def _pad(arrays: Sequence[Any]) -> NDArray[numpy.float64]:
    """Stack arrays (n, …), padded with copies of their last row, which leave a hull unchanged; empty arrays become
    zeros."""
    most = max(len(x) for x in arrays if x is not None)
    some = next(x for x in arrays if x is not None)
    table = numpy.zeros((len(arrays), most, *some.shape[1:]))
    for k, x in enumerate(arrays):
        if x is not None:
            table[k] = x[-1]
            table[k, : len(x)] = x
    return table
