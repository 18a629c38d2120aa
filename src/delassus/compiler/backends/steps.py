"""The schedule as data that back ends read: steps of code, and the locations of their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeAlias

from delassus.compiler.backends.frame import Cursor, Place, Table
from delassus.compiler.graph.program import Loop, Operand, Program


@dataclass(frozen=True)
class Chunk:
    """Values to compute one after the other, and where to put values: its own, earlier ones and constants.

    They go to slots (`stores`) and, in the body of a loop, to positions among what is kept (`keeps`).
    """

    values: tuple[int, ...]
    stores: dict[int, tuple[int, ...]]
    keeps: dict[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class ScatterStep:
    """A row of values that is written at a run-time position of a table of slots.

    Attributes:
        index: The slot of the position, which is one of the table's.
        row: Slots of the values to be written.
        table: Where they go: its items are the rows.
    """

    index: int
    row: tuple[int, ...]
    table: Table


@dataclass(frozen=True)
class LoopStep:
    """A loop with its places.

    Attributes:
        loop: What is repeated.
        body: Its steps.
        carried: First slot of the values carried over, where they also are in the end.
        onward: First slot of the values to carry on, which the body writes.
        copies: Which of these are copied to where they are carried, as ranges of positions; others are there already.
        items: Where the items are, without what is in shared arrays.
        length: Number of values in such an item.
        copied: Positions in an item that are copied to slots, with these.
        kept: Where all that is kept goes.
        cursors: Where each execution sets cursors: from another one, so many numbers further in each.
    """

    loop: Loop
    body: Schedule
    carried: int
    onward: int
    copies: tuple[range, ...]
    items: Table
    length: int
    copied: dict[int, int]
    kept: Table
    cursors: tuple[tuple[Cursor, int, Cursor], ...]


@dataclass(frozen=True)
class Schedule:
    """A program ready for a back end.

    The frame holds inputs and outputs (see `first_slots`), then everything else.

    Attributes:
        program: What is computed.
        steps: In this order.
        slots: The slot of every value that is read from the frame.
        direct: In the body of a loop, values that are read from the item, with their positions there.
        rows: Where the values are that a choice by position is made from, by that choice; steps are those per value.
        shared: Values that are numbers of shared arrays, with their places.
        roots: The cursors at the start of shared arrays, by the number of the operand.
        fixed: Slots of outputs that are constants.
        uniform: Values that are the same in all lanes: of constants and shared arrays alone.
        frame: Number of slots.
        cursors: Number of cursors.
    """

    program: Program
    steps: tuple[Step, ...]
    slots: dict[int, int]
    direct: dict[int, int]
    rows: dict[int, Table]
    shared: dict[int, Place]
    roots: dict[int, Cursor]
    fixed: dict[int, tuple[int, ...]]
    uniform: frozenset[int]
    frame: int
    cursors: int


Step: TypeAlias = Chunk | LoopStep | ScatterStep


def first_slots(operands: Sequence[Operand]) -> list[int]:
    """Where each operand starts in the frame: inputs one after the other, then outputs."""
    return [0, *accumulate(operand.slots for operand in operands)][: len(operands)]


def count_chunks(plan: Schedule) -> int:
    """Pieces of straight-line code, those in loops included."""
    return sum(count_chunks(step.body) if isinstance(step, LoopStep) else 1 for step in plan.steps)


def count_operations(step: Step) -> int:
    """Operations and stores of a step, as they are in the code: bodies of loops once."""
    if isinstance(step, LoopStep):
        return sum(map(count_operations, step.body.steps))
    if isinstance(step, ScatterStep):
        return len(step.row)
    return len(step.values) + sum(len(places) for some in (step.stores, step.keeps) for places in some.values())


def repeats(plan: Schedule) -> bool:
    """Whether more than a fifth of the operations is in loops that go on as long as a state needs them."""
    return 5 * sum(map(_repeat_count, plan.steps)) > sum(map(count_operations, plan.steps))


def _repeat_count(step: Step) -> int:
    """Operations of a step that are in such loops."""
    if not isinstance(step, LoopStep):
        return 0
    if step.loop.conditional and step.loop.count > 1:
        return count_operations(step)
    return sum(map(_repeat_count, step.body.steps))
