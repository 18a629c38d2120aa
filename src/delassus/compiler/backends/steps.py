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
    """Straight-line code.

    Attributes:
        values: Values to compute, in order.
        stores: Values to store, computed here or earlier, or constants, with their slots.
        keeps: In the body of a loop: values to store in the result of an iteration, with their positions there.
    """

    values: tuple[int, ...]
    stores: dict[int, tuple[int, ...]]
    keeps: dict[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class ScatterStep:
    """A row of values that is written at a run-time position of a table of slots.

    Attributes:
        index: The slot of the position, an index of a row of the table.
        row: Slots of the values to be written.
        table: The slots that are written; its items are the rows.
    """

    index: int
    row: tuple[int, ...]
    table: Table


@dataclass(frozen=True)
class LoopStep:
    """A loop, with the slots of its values.

    Attributes:
        loop: The loop.
        body: The schedule of its body.
        carried: First slot of the carried values, which the body reads; also that of their final values.
        onward: First slot of the new carried values, which the body writes.
        copies: Positions, as ranges, to copy from `onward` to `carried` after an iteration; others are in place.
        items: The table of the items, without elements of shared arrays.
        length: Number of values of an item in this table.
        copied: Positions in an item that are copied to slots, with these slots.
        kept: The table of the stored results.
        cursors: Cursors that each iteration sets: source, stride per iteration, target.
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

    The frame has inputs and outputs first (see `first_slots`), then all other slots.

    Attributes:
        program: The program.
        steps: The steps, in the order of execution.
        slots: The slot of every value that is read from the frame.
        direct: In the body of a loop, values that are read from the item, with their positions there.
        rows: For each gather, the table of the values that it selects from.
        shared: Values that are elements of shared arrays, with their locations.
        roots: The cursors at the start of shared arrays, by the index of the operand.
        fixed: Slots of outputs that are constants.
        uniform: Values that are the same in all lanes, since they depend on constants and shared arrays only.
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
    """The first slot of each operand in the frame: inputs in order, then outputs."""
    return [0, *accumulate(operand.slots for operand in operands)][: len(operands)]


def count_chunks(plan: Schedule) -> int:
    """The number of chunks, including those in loops."""
    return sum(count_chunks(step.body) if isinstance(step, LoopStep) else 1 for step in plan.steps)


def count_operations(step: Step) -> int:
    """The number of operations and stores in the code of a step; bodies of loops count once."""
    if isinstance(step, LoopStep):
        return sum(map(count_operations, step.body.steps))
    if isinstance(step, ScatterStep):
        return len(step.row)
    return len(step.values) + sum(len(x) for places in (step.stores, step.keeps) for x in places.values())


def repeats(plan: Schedule) -> bool:
    """Whether more than a fifth of the operations is in conditional loops, whose iterations depend on the state."""
    return 5 * sum(map(_repeat_count, plan.steps)) > sum(map(count_operations, plan.steps))


def _repeat_count(step: Step) -> int:
    """The number of operations of a step in conditional loops."""
    if not isinstance(step, LoopStep):
        return 0
    if step.loop.conditional and step.loop.count > 1:
        return count_operations(step)
    return sum(map(_repeat_count, step.body.steps))
