"""From a graph to code in pieces: an order of the operations, cut into chunks, values in slots, loops in between.

One function of many thousand operations takes LLVM long to compile and runs out of registers; many functions of
about `CHUNK` operations compile in linear time. A value used in a later chunk goes there through a slot of a
frame in memory; slots are reused as soon as their value is dead, so that the frame stays in the first-level
cache. Inputs arrive in slots and outputs leave from slots.

A loop is a step between chunks. Its body is scheduled like a program, in slots of the same frame: captured values are
where they are, what is carried has one place to be read from and another one to be written to. Chunks of the body read
their item where it lies in a table, and write what is kept into another one; a table may be an operand of the program.
Only what loops inside the body need of an item is copied to slots first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from delassus.compiler.program import Loop, Operand, Program, arguments

CHUNK = 400


@dataclass(frozen=True)
class Chunk:
    """Values to compute one after the other, and where to put values: its own, earlier ones and constants.

    They go to slots (`stores`) and, in the body of a loop, to positions among what is kept (`keeps`).
    """

    values: tuple[int, ...]
    stores: dict[int, tuple[int, ...]]
    keeps: dict[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """Slots for the items of a loop: `first`, and the steps from item to item and from value to value."""

    first: int
    per_item: int
    per_value: int

    def slots(self, count: int, length: int) -> list[int]:
        """Those of `count` items of some length, one after the other."""
        return [self.first + i * self.per_item + k * self.per_value for i in range(count) for k in range(length)]


@dataclass(frozen=True)
class LoopStep:
    """A loop with its places.

    Attributes:
        loop: What is repeated.
        body: Its steps.
        carried: First slot of the values carried over, where they also are in the end.
        onward: First slot of the values to carry on, which the body writes.
        items: Where the items are.
        copied: Positions in an item that are copied to slots, with these.
        kept: Where all that is kept goes.
    """

    loop: Loop
    body: Schedule
    carried: int
    onward: int
    items: Table
    copied: dict[int, int]
    kept: Table


@dataclass(frozen=True)
class Schedule:
    """A program ready for a back end.

    The frame holds inputs and outputs (see `first_slots`), then everything else.

    Attributes:
        program: What is computed.
        steps: In this order.
        slots: The slot of every value that is read from the frame.
        direct: In the body of a loop, values that are read from the item, with their positions there.
        fixed: Slots of outputs that are constants.
        frame: Number of slots.
    """

    program: Program
    steps: tuple[Chunk | LoopStep, ...]
    slots: dict[int, int]
    direct: dict[int, int]
    fixed: dict[int, tuple[int, ...]]
    frame: int


def first_slots(operands: Sequence[Operand]) -> list[int]:
    """Where each operand starts in the frame: inputs one after the other, then outputs."""
    return [0, *accumulate(operand.size for operand in operands)][: len(operands)]


def schedule(program: Program, chunk: int = CHUNK) -> Schedule:
    """Order, cut and assign slots."""
    operands = (*program.inputs, *program.outputs)
    first = first_slots(operands)
    frame = _Frame(sum(operand.size for operand in operands))
    starts, outputs = first[: len(program.inputs)], first[len(program.inputs) :]
    inputs = {v: starts[n[1]] + n[2] for v, n in enumerate(program.nodes) if n[0] == "input"}
    planned = _Planner(program, frame, inputs, outputs, chunk).plan(top=True)
    return replace(planned, frame=frame.size)


def count_chunks(plan: Schedule) -> int:
    """Pieces of straight-line code, those in loops included."""
    return sum(1 if isinstance(step, Chunk) else count_chunks(step.body) for step in plan.steps)


def count_operations(step: Chunk | LoopStep) -> int:
    """Operations and stores of a step, as they are in the code: bodies of loops once."""
    if isinstance(step, LoopStep):
        return sum(map(count_operations, step.body.steps))
    return len(step.values) + sum(len(places) for some in (step.stores, step.keeps) for places in some.values())


@dataclass
class _Frame:
    """Slots in use and free ones."""

    size: int
    free: list[int] = field(default_factory=list)

    def one(self) -> int:
        """A slot."""
        return self.free.pop() if self.free else self.row(1)

    def row(self, length: int) -> int:
        """The first of some slots in a row: free ones if there are so many side by side, or else new ones."""
        if 1 < length <= len(self.free):
            free, run = sorted(self.free), 1
            for k in range(1, len(free)):
                run = run + 1 if free[k] == free[k - 1] + 1 else 1
                if run == length:
                    taken = set(free[k - length + 1 : k + 1])
                    self.free = [slot for slot in self.free if slot not in taken]
                    return min(taken)
        self.size += length
        return self.size - length


class _Planner:
    """Assigns slots to a program, or to the body of a loop, in a frame."""

    def __init__(
        self,
        program: Program,
        frame: _Frame,
        inputs: dict[int, int],
        outputs: Sequence[int | None],
        chunk: int,
        direct: dict[int, int] | None = None,
    ) -> None:
        """Plan `program` with inputs in slots or `direct`; an output is in slots from the given one on, or kept."""
        self.program, self.frame, self.outputs, self.chunk = program, frame, outputs, chunk
        self.slots, self.direct = dict(inputs), direct or {}
        self.pieces = _pieces(program, chunk)
        self.born: dict[int, int] = {}  # the piece that computes a value
        self.last: dict[int, int] = {}  # the last piece that uses it
        for p, piece in enumerate(self.pieces):
            for value in piece:
                self.born[value] = p
                for argument in arguments(program.nodes[value]):
                    if argument > 0:
                        self.last[argument] = p
        self.parts: dict[int, dict[int, int]] = {}  # by loop: its parts that are used
        for value, node in enumerate(program.nodes):
            if node[0] == "part":
                self.parts.setdefault(node[1], {})[node[2]] = value
                self.born[value] = self.born[node[1]]
        self.dying: list[list[int]] = [[] for _ in self.pieces]
        self.stores: list[dict[int, list[int]]] = [{} for _ in self.pieces]
        self.keeps: list[dict[int, list[int]]] = [{} for _ in self.pieces]

    def plan(self, top: bool) -> Schedule:
        """The schedule; `top` if inputs are not needed again once they are read."""
        steps: list[Chunk | LoopStep] = []
        fixed = self._place_results(top)
        if top:
            for value, slot in self.slots.items():
                if self.program.nodes[value][0] == "input":
                    self.dying[self.last.get(value, 0)].append(slot)
        for p, piece in enumerate(self.pieces):
            if self._is_loop(p):
                steps += self._loop(p)
            else:
                for value in piece:
                    if self.last.get(value, p) > p and value not in self.slots:
                        self.slots[value] = self.frame.one()
                        self.stores[p].setdefault(value, []).append(self.slots[value])
                        self.dying[self.last[value]].append(self.slots[value])
                steps += self._chunks(piece, _frozen(self.stores[p]), _frozen(self.keeps[p]))
            self.frame.free.extend(self.dying[p])
        return Schedule(self.program, tuple(steps), self.slots, self.direct, fixed, self.frame.size)

    def _is_loop(self, p: int) -> bool:
        piece = self.pieces[p]
        return len(piece) == 1 and self.program.nodes[piece[0]][0] == "loop"

    def _place_results(self, top: bool) -> dict[int, tuple[int, ...]]:
        """Note where results go: from where they are computed, or from a chunk after the loop that gives them."""
        fixed: dict[int, list[int]] = {}
        kept = self._kept_in_outputs()
        for start, result in zip(self.outputs, self.program.results, strict=True):
            for k, value in enumerate(result):
                slot = k if start is None else start + k
                if value <= 0 and top:
                    fixed.setdefault(value, []).append(slot)
                    continue
                p = self.born.get(value, 0)
                if value > 0 and self.program.nodes[value][0] == "part":
                    if kept.get(value) == slot and start is not None:
                        continue
                    p += 1
                while self._is_loop(p):  # the last piece is a chunk
                    p += 1
                if value > 0:
                    self.last[value] = max(p, self.last.get(value, 0))
                if start is None:
                    self.keeps[p].setdefault(value, []).append(slot)
                    continue
                if p == self.born.get(value) and value not in kept:
                    self.slots.setdefault(value, slot)
                self.stores[p].setdefault(value, []).append(slot)
        return _frozen(fixed)

    def _kept_in_outputs(self) -> dict[int, int]:
        """Slots of what loops keep directly in outputs: possible if all of it goes to places in regular steps.

        What nobody uses of it goes there as well, if the slot gets its own value later.
        """
        places: dict[int | None, set[int]] = {}
        later: dict[int, int] = {}  # by slot: the piece that computes its value
        for start, result in zip(self.outputs, self.program.results, strict=True):
            for k, value in enumerate(result):
                if start is not None and value > 0:
                    places.setdefault(value, set()).add(start + k)
                    later[start + k] = self.born.get(value, -1)
        found: dict[int, int] = {}
        self.tables: dict[int, Table] = {}
        for value, parts in self.parts.items():
            loop, p = self.program.loops[self.program.nodes[value][1]], self.born[value]
            kept = [parts.get(k) for k in range(loop.carried, loop.parts)]
            unused = {slot for slot in later if later[slot] >= p}
            decisive = (0, 1, loop.kept)  # these give the steps, so they have places of their own
            allowed = [places.get(k, set()) if k or n in decisive else unused for n, k in enumerate(kept)]
            table = _table(allowed, loop.count, loop.kept)
            slots = [] if table is None else table.slots(loop.count, loop.kept)
            if table is not None and len(set(slots)) == len(slots):
                self.tables[value] = table
                found |= {k: slot for k, slot in zip(kept, slots, strict=True) if k is not None}
        return found

    def _loop(self, p: int) -> list[Chunk | LoopStep]:
        """The steps of a loop: a chunk that puts things into their places, and the loop itself."""
        (value,) = self.pieces[p]
        node, frame, slots = self.program.nodes[value], self.frame, self.slots
        loop = self.program.loops[node[1]]
        first, items, captured = loop.split(arguments(node))
        moves: dict[int, list[int]] = {}
        carried, onward = frame.row(loop.carried), frame.row(loop.carried)
        released = [*range(onward, onward + loop.carried)]
        for k, source in enumerate(first):
            moves.setdefault(source, []).append(carried + k)

        flat = [v for values in items for v in values]
        walked = _table([{slots[v]} if v in slots else set() for v in flat], loop.count, loop.item)
        if walked is None:
            walked, reserved = _new_table(frame, loop, loop.item)
            released += reserved
            for source, slot in zip(flat, walked.slots(loop.count, loop.item), strict=True):
                moves.setdefault(source, []).append(slot)

        kept = self.tables.get(value)
        parts = self.parts.get(value, {})
        here = {k: carried + k for k in range(loop.carried)}
        if kept is None:
            kept, reserved = _new_table(frame, loop, loop.kept)
            there = kept.slots(loop.count, loop.kept)
            here |= dict(enumerate(there, loop.carried))
            released += sorted(set(reserved) - set(there))
        else:
            for n, slot in enumerate(kept.slots(loop.count, loop.kept), loop.carried):
                if n in parts:
                    slots[parts[n]] = slot

        places = {(0, k): carried + k for k in range(loop.carried)}
        for k, source in enumerate(captured):
            if source <= 0:
                places[2, k] = frame.one()
                released.append(places[2, k])
                moves.setdefault(source, []).append(places[2, k])
            else:
                places[2, k] = slots[source]
        nodes = loop.body.nodes
        needed = {a for n in nodes if n[0] == "loop" for a in arguments(n)}
        positions = sorted(n[2] for v, n in enumerate(nodes) if n[:2] == ("input", 1) and v in needed)
        row = frame.row(len(positions))
        copied = {k: row + n for n, k in enumerate(positions)}
        released += copied.values()
        places |= {(1, k): slot for k, slot in copied.items()}
        named = {v: (n[1], n[2]) for v, n in enumerate(nodes) if n[0] == "input"}
        around = {v: places[place] for v, place in named.items() if place in places}
        direct = {v: place[1] for v, place in named.items() if place not in places}
        body = _Planner(loop.body, frame, around, (onward, None), self.chunk, direct).plan(top=False)

        for k, slot in here.items():
            if k in parts:
                slots[parts[k]] = slot
                self.dying[self.last.get(parts[k], p)].append(slot)
            else:
                released.append(slot)
        self.dying[p] += released
        step = LoopStep(loop, body, carried, onward, walked, copied, kept)
        return [*self._chunks((), _frozen(moves), {}), step] if moves else [step]

    def _chunks(
        self, values: tuple[int, ...], stores: dict[int, tuple[int, ...]], keeps: dict[int, tuple[int, ...]]
    ) -> list[Chunk | LoopStep]:
        """A chunk, with its stores of what it does not compute in chunks of their own, if they are many."""
        own = set(values)
        moves = [
            (kind, value, place)
            for kind, places in enumerate((stores, keeps))
            for value, some in places.items()
            if value not in own
            for place in some
        ]
        if len(moves) <= self.chunk:
            return [Chunk(values, stores, keeps)]
        chunks: list[Chunk | LoopStep] = []
        for k in range(0, len(moves), self.chunk):
            parts: tuple[dict[int, list[int]], dict[int, list[int]]] = ({}, {})
            for kind, value, place in moves[k : k + self.chunk]:
                parts[kind].setdefault(value, []).append(place)
            chunks.append(Chunk((), *map(_frozen, parts)))
        rest = ({v: places[v] for v in values if v in places} for places in (stores, keeps))
        return [*chunks, Chunk(values, *rest)]


def _pieces(program: Program, chunk: int) -> list[tuple[int, ...]]:
    """The operations in order, in pieces of at most `chunk`; a loop is a piece of its own, and never the last one."""
    pieces: list[tuple[int, ...]] = []
    run: list[int] = []
    for value, node in enumerate(program.nodes):
        if not value or node[0] in ("input", "part"):
            continue
        if node[0] == "loop" or len(run) == chunk:
            pieces += [tuple(run)] if run else []
            run = []
        if node[0] == "loop":
            pieces.append((value,))
        else:
            run.append(value)
    return [*pieces, tuple(run)]


def _new_table(frame: _Frame, loop: Loop, length: int) -> tuple[Table, range]:
    """Slots for all items of some length, and all that were reserved for them.

    Items that can be computed side by side have their first values side by side, and so on; from one value to the next
    it is an odd number of slots, as strides of many powers of two share few places in a cache.
    """
    if not loop.is_map:
        table, size = Table(0, length, 1), loop.count * length
    else:
        table = Table(0, 1, loop.count | 1)
        size = table.per_value * length
    first = frame.row(size)
    return replace(table, first=first), range(first, first + size)


def _table(allowed: Sequence[set[int]], count: int, length: int) -> Table | None:
    """Slots in regular steps for `count` items of some length, each out of those that are allowed for it."""
    if not allowed:
        return Table(0, 0, 0)
    for first in sorted(allowed[0]):
        for second in sorted(allowed[length % len(allowed)]):
            for below in sorted(allowed[1 % len(allowed)]):
                table = Table(first, second - first if count > 1 else 0, below - first if length > 1 else 0)
                if all(slot in some for slot, some in zip(table.slots(count, length), allowed, strict=True)):
                    return table
    return None


def _frozen(places: dict[int, list[int]]) -> dict[int, tuple[int, ...]]:
    return {value: tuple(slots) for value, slots in places.items()}
