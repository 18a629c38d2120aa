"""The cones of a problem and their rows: what a solver knows at compile time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from delassus.contact.cones.kinds import Cone, Free, Friction, Interval, NonNegative


@dataclass(frozen=True)
class Layout:
    """The cones of a problem, row by row.

    Solvers use another order of rows: free rows first, since they are eliminated first, then half-lines, then
    intervals, then contacts.
    """

    cones: tuple[Cone, ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Cached, since every call looks up its kernel by it."""
        return hash(self.cones)

    @cached_property
    def places(self) -> tuple[tuple[Cone, range], ...]:
        """The rows of each cone."""
        slices, start = [], 0
        for cone in self.cones:
            slices.append((cone, range(start, start + cone.rows)))
            start += cone.rows
        return tuple(slices)

    @cached_property
    def m(self) -> int:
        """The number of rows."""
        return sum(cone.rows for cone in self.cones)

    @property
    def large(self) -> bool:
        """Whether loops over rows are compiled as loops; unrolled code would take too long to compile."""
        return self.m > 36

    @cached_property
    def contacts(self) -> int:
        """The number of contacts with friction."""
        return len(self.friction)

    @cached_property
    def intervals(self) -> int:
        """The number of rows with two bounds."""
        return len(self.rows(Interval))

    @cached_property
    def torsional(self) -> int:
        """The number of contacts that have torsional friction."""
        return sum(len(rows) > 3 for rows in self.friction)

    @cached_property
    def rolling(self) -> int:
        """The number of contacts that have rolling friction."""
        return sum(len(rows) > 4 for rows in self.friction)

    @cached_property
    def friction(self) -> tuple[range, ...]:
        """The rows of each contact."""
        return tuple(rows for cone, rows in self.places if isinstance(cone, Friction))

    def rows(self, kind: type[Cone]) -> tuple[int, ...]:
        """All rows of one type of cone."""
        return tuple(row for cone, rows in self.places if isinstance(cone, kind) for row in rows)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The rows in the order of the solvers; within a contact, tangents (and moments) first and the normal last."""
        contacts = [row for rows in self.friction for row in (*rows[:2], *rows[3:], rows[2])]
        return (*self.rows(Free), *self.rows(NonNegative), *self.rows(Interval), *contacts)

    @cached_property
    def blocks(self) -> tuple[slice, ...]:
        """The contacts' rows in that order."""
        start, blocks = self.m - sum(len(rows) for rows in self.friction), []
        for rows in self.friction:
            blocks.append(slice(start, start + len(rows)))
            start += len(rows)
        return tuple(blocks)

    @cached_property
    def scalars(self) -> int:
        """The number of rows that come before the contacts in that order."""
        return len(self.order) - sum(len(rows) for rows in self.friction)
