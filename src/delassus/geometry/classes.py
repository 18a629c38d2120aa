"""Classes of pairs: pairs of shapes of the same two types, which share one narrow-phase function.

Straight-line code for hundreds of pairs would take too long to compile. Loops over the pairs of a class read the shapes
as data (see `broad_phase` and `narrow_phase`). Scenes with few pairs keep straight-line code, in which sizes are
constants.

A pair has one contact for each point of its entries in the table of pairs. The index of a contact is the index of its
pair times this number, plus its own index; it is the same in every state.
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
"""Largest number of operations of all narrow phases in a scene that are compiled as straight-line code."""

_PLACE: Final = 60
"""Operations of a step for each contact point, in addition to its narrow phase."""

_TETRAHEDRON: Final = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@dataclass(frozen=True)
class PairClass:
    """Pairs of shapes of the same two types.

    Attributes:
        pairs: The pairs, each in the order of the table of pairs.
        slots: The largest number of pairs in the narrow phase of a state.
    """

    pairs: tuple[tuple[Shape, Shape], ...]
    slots: int

    @cached_property
    def collisions(self) -> tuple[Collision, ...]:
        """The contact functions of the first pair, which are those of all pairs."""
        return tuple(collisions_of(*self.pairs[0]))

    @property
    def points(self) -> int:
        """The number of contacts of a pair."""
        return sum(collision.count for collision in self.collisions)

    @property
    def count(self) -> int:
        """The number of contacts of all pairs."""
        return len(self.pairs) * self.points

    @property
    def slot_count(self) -> int:
        """The number of contacts of the pairs in the narrow phase."""
        return self.slots * self.points

    def place_shapes(self) -> Iterable[tuple[Shape, Shape, str]]:
        """For each contact the shape, the other shape, and a name."""
        for pair in self.pairs:
            for collision in collisions_of(*pair):
                yield from [(collision.shape, collision.other, collision.name)] * collision.count


def arrange_pairs(
    pairs: Iterable[tuple[Shape, Shape]], slots: int
) -> tuple[tuple[Collision, ...], tuple[PairClass, ...]]:
    """Split pairs into those in straight-line code and those in classes; unsupported pairs are omitted.

    Straight-line code has at most `STRAIGHT` operations. The types of pairs with the highest cost become classes until
    the other types are within this limit. Pairs with planes have no bounds and stay in straight-line code. At most
    `slots` pairs of a class enter the narrow phase of a state.
    """
    groups: dict[Any, list[tuple[Shape, Shape]]] = {}
    for pair in pairs:
        collisions = collisions_of(*pair)
        if collisions:
            first = collisions[0].shape, collisions[0].other
            groups.setdefault(
                (first[0].kind.name, first[1].kind.name, *(collision.count for collision in collisions)), []
            ).append(first)
    costs = {key: len(group) * (narrow_operations(*key[:2]) + _PLACE * sum(key[2:])) for key, group in groups.items()}
    looped: list[Any] = []
    for key in sorted(costs, key=lambda key: -costs[key]):
        if sum(costs[key] for key in costs if key not in looped) > STRAIGHT and "plane" not in key[:2]:
            looped.append(key)
    straight = [pair for key, group in groups.items() if key not in looped for pair in group]
    classes = tuple(PairClass(tuple(groups[key]), min(slots, len(groups[key]))) for key in looped)
    return tuple(dict.fromkeys(collision for pair in straight for collision in collisions_of(*pair))), classes


@lru_cache
def narrow_operations(one: str, two: str) -> int:
    """Traced operations of the narrow phase of two types of shapes; loops count once."""
    program = _narrow_phase.program((one, two))
    return sum(program.count().values())


@kernel("(3,3),(3),(3,3),(3)->()")
def _narrow_phase(kinds: tuple[str, str], R: Any, p: Any, R_other: Any, p_other: Any) -> Any:
    """The smallest gap of two shapes of arbitrary size."""
    sizes = [(1.0, 0.7, 0.3)[: SHAPES[kind].lengths] if SHAPES[kind].lengths else _TETRAHEDRON for kind in kinds]
    one, other = Placed(R, p, sizes[0]), Placed(R_other, p_other, sizes[1])
    gaps = []
    for entry in PAIRS[kinds]:
        gaps += [touch.gap for touch in entry.touches(one, other)]
        gaps += [touch.gap for touch in entry.touches(other, one)] if entry.mutual else []
    return np.min(np.stack(gaps))
