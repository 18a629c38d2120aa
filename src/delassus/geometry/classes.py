"""Pairs of shapes of the same two kinds: a loop over the nearest ones, with shapes as data.

Straight-line code for each of some hundred pairs would not compile. All pairs of a class share one narrow phase:

    shapes in the world      poses and bounding capsules of all shapes, gathered from those of the links
    broad phase              gaps of bounding capsules of all pairs, lower bounds of their own
    the nearest K pairs      by `nearest`, in the order of their numbers
    narrow phase             a loop over these, shapes gathered by their numbers; left out for pairs beyond `REACH`

A pair has as many places as its entries in the table of pairs have points. The number of a place is that of its pair
times their count, and its own: it is the same in every state, whichever pairs are near. Cost: 60 operations a pair, and
a narrow phase for each near one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

import numpy
from numpy.typing import NDArray

import delassus.numpy as np
from delassus.compiler.host.kernel import kernel
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import map as map_stacks
from delassus.dynamics.tree.poses import Pair
from delassus.geometry.bounds import bounding_capsule, segment_distance
from delassus.geometry.candidates import Shape
from delassus.geometry.collisions import Collision, collisions_of
from delassus.geometry.hulls.tables import Hull, as_hull
from delassus.geometry.nearest import nearest
from delassus.geometry.pairs.registry import PAIRS
from delassus.geometry.shapes.registry import SHAPES, Placed
from delassus.model.links import Links
from delassus.model.parts import WORLD

REACH: Final = 0.05
"""Pairs [m] whose bounding capsules are farther apart are not looked at: what closes at 10 m/s in steps of 5 ms."""

STRAIGHT: Final = 20_000
"""Operations of narrow phases in a scene that are still straight-line code."""

_PLACE: Final = 60
"""Operations that a step has for each place that may touch, besides its narrow phase."""

_TETRAHEDRON: Final = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@dataclass(frozen=True)
class PairClass:
    """Pairs of shapes of the same two kinds, each in the order of the table, and how many are looked at in a state."""

    pairs: tuple[tuple[Shape, Shape], ...]
    slots: int

    @cached_property
    def collisions(self) -> tuple[Collision, ...]:
        """The ways in which the first pair touches: the same ones as for all."""
        return tuple(collisions_of(*self.pairs[0]))

    @property
    def points(self) -> int:
        """Places of a pair."""
        return sum(collision.count for collision in self.collisions)

    @property
    def count(self) -> int:
        """Places of all pairs."""
        return len(self.pairs) * self.points

    @property
    def slot_count(self) -> int:
        """Places of the pairs that are looked at."""
        return self.slots * self.points

    def place_shapes(self) -> Iterable[tuple[Shape, Shape, str]]:
        """Of each place the shape, the other one, and a name."""
        for pair in self.pairs:
            for collision in collisions_of(*pair):
                yield from [(collision.shape, collision.other, collision.name)] * collision.count


class WorldShapes(NamedTuple):
    """Shapes in the world: rotations (n, 3, 3), centres (n, 3), bounding capsules center ± half, (n, 3) each."""

    R: Any
    p: Any
    center: Any
    half: Any


class Places(NamedTuple):
    """Places of pairs: gaps (n,) [m], points and normals (n, 3) in the world, and their numbers (n,) in the class.

    `crowded` if bounding capsules of more pairs overlap than are looked at.
    """

    gap: Any
    point: Any
    normal: Any
    number: Any
    crowded: Any


def arrange_pairs(
    pairs: Iterable[tuple[Shape, Shape]], slots: int
) -> tuple[tuple[Collision, ...], tuple[PairClass, ...]]:
    """Pairs as straight-line code while they are few, else in classes; pairs that are not in the table are left out.

    Few are those whose code has no more than `STRAIGHT` operations: classes are made of the kinds that have most of
    them, until the rest is few. Pairs with planes have no bounds, and stay as they are. `slots` pairs of a class are
    looked at in a state, at most.
    """
    groups: dict[Any, list[tuple[Shape, Shape]]] = {}
    for pair in pairs:
        ways = collisions_of(*pair)
        if ways:
            first = ways[0].shape, ways[0].other
            groups.setdefault((first[0].kind.name, first[1].kind.name, *(way.count for way in ways)), []).append(first)
    costs = {key: len(group) * (narrow_operations(*key[:2]) + _PLACE * sum(key[2:])) for key, group in groups.items()}
    looped: list[Any] = []
    for key in sorted(costs, key=lambda key: -costs[key]):
        if sum(costs[key] for key in costs if key not in looped) > STRAIGHT and "plane" not in key[:2]:
            looped.append(key)
    straight = [pair for key, group in groups.items() if key not in looped for pair in group]
    classes = tuple(PairClass(tuple(groups[key]), min(slots, len(groups[key]))) for key in looped)
    return tuple(dict.fromkeys(way for pair in straight for way in collisions_of(*pair))), classes


@lru_cache
def narrow_operations(one: str, two: str) -> int:
    """Traced operations of the narrow phase of two kinds of shapes, loops counted once."""
    program = _narrow_phase.program((one, two))
    return sum(program.count().values())


@kernel("(3,3),(3),(3,3),(3)->()")
def _narrow_phase(kinds: tuple[str, str], R: Any, p: Any, R_other: Any, p_other: Any) -> Any:
    """The least gap of two shapes of some size."""
    sizes = [(1.0, 0.7, 0.3)[: SHAPES[kind].lengths] if SHAPES[kind].lengths else _TETRAHEDRON for kind in kinds]
    one, other = Placed(R, p, sizes[0]), Placed(R_other, p_other, sizes[1])
    gaps = []
    for entry in PAIRS[kinds]:
        gaps += [touch.gap for touch in entry.touches(one, other)]
        gaps += [touch.gap for touch in entry.touches(other, one)] if entry.mutual else []
    return np.min(np.stack(gaps))


def shapes_in(classes: Sequence[PairClass]) -> tuple[Shape, ...]:
    """All shapes of classes, once."""
    return tuple(dict.fromkeys(shape for one in classes for pair in one.pairs for shape in pair))


def place_shapes(shapes: Sequence[Shape], tree: Links, world: list[Pair]) -> WorldShapes:
    """Shapes where links with some rotations and origins carry them."""
    links, placements = zip(*(tree.place(s.geometry.joint, s.geometry.placement) for s in shapes), strict=True)
    R_links = np.stack([*(R for R, _ in world), numpy.eye(3)])
    p_links = np.stack([*(p for _, p in world), numpy.zeros(3)])
    capsules = [bounding_capsule(shape) for shape in shapes]

    def place(link: Any, R: Any, p: Any, center: Any, half: Any) -> WorldShapes:
        R_link, p_link = np.take(R_links, link, axis=0), np.take(p_links, link, axis=0)
        R_world, p_world = R_link @ R, p_link + R_link @ p
        return WorldShapes(R_world, p_world, p_world + R_world @ center, R_world @ half)

    numbers = [float(len(tree.links) if link == WORLD else link) for link in links]
    return map_stacks(
        place,
        numpy.array(numbers),
        numpy.stack([x.R for x in placements]),
        numpy.stack([x.p for x in placements]),
        numpy.stack([c.center for c in capsules]),
        numpy.stack([c.half for c in capsules]),
    )


def class_places(one: PairClass, shapes: Sequence[Shape], placed: WorldShapes, every: bool = False) -> Places:
    """Where the nearest pairs of a class touch, or all of them."""
    index = {shape: k for k, shape in enumerate(shapes)}
    pairs = numpy.array([[float(index[shape]) for shape in pair] for pair in one.pairs])
    radii = numpy.array([sum(bounding_capsule(shape).radius for shape in pair) for pair in one.pairs])
    numbers: Any = numpy.arange(float(len(pairs)))
    bounds: Any = numpy.zeros(len(pairs))
    crowded: Any = np.array(False)
    if not every:
        bounds = _bounds(placed, pairs, radii)
        numbers, following = nearest(bounds, one.slots)
        crowded = following < 0.0
    sizes = [_size_table(shapes, frozenset(column)) for column in zip(*one.pairs, strict=True)]

    def narrow(i: Any, j: Any) -> tuple[Any, Any, Any]:
        bodies = [
            Placed(np.take(placed.R, k, axis=0), np.take(placed.p, k, axis=0), size(k))
            for k, size in zip((i, j), sizes, strict=True)
        ]
        touches = []
        for collision in one.collisions:
            swapped = collision.shape != one.pairs[0][0]
            touches += collision.pair.touches(*(reversed(bodies) if swapped else bodies))
        gap, point, normal = (np.stack([np.array(touch[k]) for touch in touches]) for k in range(3))
        return gap, point, normal

    def look_at(number: Any) -> tuple[Any, Any, Any]:
        i, j = (np.take(pairs[:, k], number) for k in range(2))
        bound = np.take(bounds, number)
        beyond = (
            np.full(one.points, 1.0) * bound,
            np.zeros((one.points, 3)) + np.take(placed.center, i, axis=0),
            np.zeros((one.points, 3)) + numpy.array([0.0, 0.0, 1.0]),
        )
        return cond(bound < REACH, narrow, beyond, i, j)

    gap, point, normal = map_stacks(look_at, np.array(numbers))
    points = numpy.arange(float(one.points))
    number = (np.array(numbers)[:, None] * float(one.points) + points).reshape(-1)
    return Places(gap.reshape(-1), point.reshape(-1, 3), normal.reshape(-1, 3), number, crowded)


def _bounds(placed: WorldShapes, pairs: NDArray[numpy.float64], radii: NDArray[numpy.float64]) -> Any:
    """Gaps (pairs,) [m] of bounding capsules."""

    def bound(pair: Any, radius: Any) -> Any:
        (p1, d1), (p2, d2) = ([np.take(x, pair[k], axis=0) for x in (placed.center, placed.half)] for k in range(2))
        return segment_distance(p1, d1, p2, d2) - radius

    return map_stacks(bound, pairs, radii)


def _size_table(shapes: Sequence[Shape], used: frozenset[Shape]) -> Callable[[Any], Any]:
    """The size of a shape by its number, one of those that are used; hulls have as many rows as the largest one."""
    kind = next(iter(used)).kind
    if kind.name != "mesh":
        table = _padded([numpy.array(shape.size) if shape in used else None for shape in shapes])
        return lambda k: np.take(table, k, axis=0)
    hulls = [as_hull(shape.size) if shape in used else None for shape in shapes]
    tables = [_padded([hull and hull[part] for hull in hulls]) for part in range(3)]
    return lambda k: Hull(*(np.take(table, k, axis=0) for table in tables))


def _padded(arrays: Sequence[Any]) -> NDArray[numpy.float64]:
    """Arrays (n, …) as one, with the last row of each repeated, which changes no hull; zeros where there is none."""
    most = max(len(x) for x in arrays if x is not None)
    some = next(x for x in arrays if x is not None)
    table = numpy.zeros((len(arrays), most, *some.shape[1:]))
    for k, x in enumerate(arrays):
        if x is not None:
            table[k] = x[-1]
            table[k, : len(x)] = x
    return table
