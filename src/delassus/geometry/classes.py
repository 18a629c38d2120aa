"""Classes of pairs: pairs of shapes of the same two types, which share one narrow-phase function.

Straight-line code for each of some hundred pairs would not compile. The pairs of a class are looked through by loops
with shapes as data (see `broad_phase` and `narrow_phase`); a few pairs stay straight-line code, which constants make
short.

A pair has as many places as its entries in the table of pairs have points. The number of a place is that of its pair
times their count, and its own: it is the same in every state, whichever pairs are near.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

import delassus.numpy as np
from delassus.compiler.host.kernel import kernel
from delassus.geometry.candidates import Shape
from delassus.geometry.collisions import Collision, collisions_of
from delassus.geometry.pairs.registry import PAIRS
from delassus.geometry.shapes.registry import SHAPES, Placed

STRAIGHT: Final = 4_000
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
