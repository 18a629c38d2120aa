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
        """Those of `count` items of some length, one after the other."""
        if not length:  # of a bound of millions, no walk through nothing
            return []
        return [self.first + i * self.per_item + k * self.per_value for i in range(count) for k in range(length)]


@dataclass(frozen=True)
class Cursor:
    """An address in a shared array, in two slots of the frame from `slot` on; `number` tells it from others."""

    number: int
    slot: int


Place: TypeAlias = tuple[Cursor, int]
"""Where a number of a shared array is: so many numbers after a cursor."""


@dataclass
class Frame:
    """Slots in use and free ones."""

    size: int
    free: list[int] = field(default_factory=list)
    cursors: int = 0

    def cursor(self, slot: int | None = None) -> Cursor:
        """A new cursor, in slots of its own if none are given."""
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
        """Slots for all items of equal length, and all slots reserved for them.

        Items that can be computed side by side have their first values side by side, and so on; from one value to the
        next it is an odd number of slots, as strides of many powers of two share few places in a cache.
        """
        if not loop.is_map:
            table, size = Table(0, length, 1), loop.count * length
        else:
            table = Table(0, 1, loop.count | 1)
            size = table.per_value * length
        first = self.row(size)
        return replace(table, first=first), range(first, first + size)


def find_table(allowed: Sequence[set[int]], count: int, length: int) -> Table | None:
    """Slots in regular steps for `count` items of some length, each out of those that are allowed for it."""
    if not allowed:
        return Table(0, 0, 0)
    for first in sorted(allowed[0]):
        for second in sorted(allowed[length % len(allowed)]):
            for below in sorted(allowed[1 % len(allowed)]):
                table = Table(first, second - first if count > 1 else 0, below - first if length > 1 else 0)
                if all(slot in slots for slot, slots in zip(table.slots(count, length), allowed, strict=True)):
                    return table
    return None


def find_step(locations: Sequence[Place | None]) -> int | None:
    """The step between places that are in a row of one shared array; None if they are not."""
    cursors = {location[0] if location else None for location in locations}
    if len(cursors) > 1 or None in cursors:
        return None
    offsets = [location[1] for location in locations if location]
    steps = {b - a for a, b in pairwise(offsets)}
    return None if len(steps) > 1 else max(steps, default=0)
