"""Collisions between shapes of robots and of the world, by the table of pairs."""

from __future__ import annotations

from dataclasses import dataclass

from delassus.dynamics.tree.poses import Pair
from delassus.geometry.candidates import Shape, placed_shape
from delassus.geometry.pairs.registry import PAIRS, PairEntry
from delassus.geometry.shapes.registry import Touch
from delassus.model.links import Links


@dataclass(frozen=True)
class Collision:
    """The contacts of a shape with another one, by one entry of their pair in the table of pairs."""

    shape: Shape
    other: Shape
    entry: int = 0

    @property
    def pair(self) -> PairEntry:
        """The entry of the pair in the table of pairs."""
        return PAIRS[self.shape.kind.name, self.other.kind.name][self.entry]

    @property
    def count(self) -> int:
        """The number of contact points."""
        return self.pair.points(self.shape.size)

    @property
    def name(self) -> str:
        """The name "shape on other"."""
        return f"{self.shape.geometry.name} on {self.other.geometry.name}"


def collisions_of(one: Shape, two: Shape) -> list[Collision]:
    """The collisions of two shapes, one for each entry in the table of pairs; empty if their pair is not in it."""
    for first, second in ((one, two), (two, one)):
        entries = PAIRS.get((first.kind.name, second.kind.name), ())
        if entries:
            collisions = []
            for k, entry in enumerate(entries):
                collisions.append(Collision(first, second, k))
                collisions += [Collision(second, first, k)] if entry.mutual else []
            return collisions
    return []


def collision_touches(collision: Collision, tree: Links, world: list[Pair]) -> list[Touch]:
    """The contacts of a collision, open ones included; normals point from the other shape to the first."""
    shape, other = (placed_shape(one, tree, world) for one in (collision.shape, collision.other))
    return collision.pair.touches(shape, other)
