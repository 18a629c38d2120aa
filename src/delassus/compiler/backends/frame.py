"""The frame: memory slots for values that pass between chunks of code.

Shared arrays are not in the frame. It holds their addresses, and cursors, the current addresses of loops in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, TypeAlias

from delassus.compiler.graph.program import Loop

LARGEST_FRAME: Final = 512 * 1024
"""Largest number of slots: four megabytes for one state."""

LARGEST_ON_STACK: Final = 128 * 1024
"""Largest number of slots of a C program, whose frame is on the stack: one megabyte."""


@dataclass(frozen=True)
class Table:
    """Slots for the items of a loop: `first`, and the steps from item to item and from value to value."""

    first: int
    per_item: int
    per_value: int

    def slots(self, count: int, length: int) -> list[int]:
        """The slots of `count` items with `length` values each, in order."""
        if not length:  # `count` may be millions
            return []
        return [self.first + i * self.per_item + k * self.per_value for i in range(count) for k in range(length)]


@dataclass(frozen=True)
class Cursor:
    """An address in a shared array, in two slots of the frame from `slot` on; `number` is its index."""

    number: int
    slot: int


Place: TypeAlias = tuple[Cursor, int]
"""The location of an element of a shared array: a cursor and an offset from it."""


@dataclass
class Frame:
    """Slots in use and free ones."""

    size: int
    free: list[int] = field(default_factory=list)
    cursors: int = 0

    def cursor(self, slot: int | None = None) -> Cursor:
        """A new cursor at a slot, or in new slots if `slot` is None."""
        self.cursors += 1
        return Cursor(self.cursors - 1, self.row(2) if slot is None else slot)

    def one(self) -> int:
        """Allocate one slot, a free one if there is any."""
        return self.free.pop() if self.free else self.row(1)

    def row(self, length: int) -> int:
        """The first of several contiguous slots: free ones if available, otherwise new ones."""
        if 1 < length <= len(self.free):
            free, run = sorted(self.free), 1
            for k in range(1, len(free)):
                run = run + 1 if free[k] == free[k - 1] + 1 else 1
                if run == length:
                    reserved = set(free[k - length + 1 : k + 1])
                    self.free = [slot for slot in self.free if slot not in reserved]
                    return min(reserved)
        self.size += length
        return self.size - length

    def table(self, loop: Loop, length: int) -> tuple[Table, range]:
        """A table for all items of a loop, `length` values each, and all slots reserved for it.

        For a `map`, whose items can be computed in parallel, the k-th values of all items are adjacent. The stride from
        one value of an item to the next is odd, since strides by powers of two map to few cache sets.
        """
        if not loop.is_map:
            table, size = Table(0, length, 1), loop.count * length
        else:
            table = Table(0, 1, loop.count | 1)
            size = table.per_value * length
        first = self.row(size)
        return replace(table, first=first), range(first, first + size)


def find_table(allowed: Sequence[set[int]], count: int, length: int) -> Table | None:
    """A table for `count` items of `length` values, with an allowed slot for each value; None if there is none."""
    if not allowed:
        return Table(0, 0, 0)
    for first in sorted(allowed[0]):
        for second in sorted(allowed[length % len(allowed)]):
            for next_value in sorted(allowed[1 % len(allowed)]):
                table = Table(first, second - first if count > 1 else 0, next_value - first if length > 1 else 0)
                if all(slot in slots for slot, slots in zip(table.slots(count, length), allowed, strict=True)):
                    return table
    return None


def find_step(locations: Sequence[Place | None]) -> int | None:
    """The constant stride between locations in one shared array; None if there is no such stride."""
    cursors = {location[0] if location else None for location in locations}
    if len(cursors) > 1 or None in cursors:
        return None
    offsets = [location[1] for location in locations if location]
    steps = {b - a for a, b in pairwise(offsets)}
    return None if len(steps) > 1 else max(steps, default=0)
