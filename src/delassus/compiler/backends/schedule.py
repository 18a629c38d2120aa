"""Schedules a graph: orders its operations, cuts them into chunks, and assigns slots to values.

A function of many thousand operations takes LLVM long to compile and runs out of registers; functions of about `CHUNK`
operations compile in linear time. A value used in a later chunk is passed through a slot of a frame in memory; slots
are reused when their value is dead, so that the frame stays in the first-level cache. Inputs arrive in slots and
outputs leave from slots.

A loop is a step between chunks. Its body is scheduled like a program, in slots of the same frame: captured values stay
in their slots, carried values have one range of slots for reading and one for writing. Chunks of the body read their
item directly from a table, and write results to another table. A table may be an operand of the program. Only those
values of an item that inner loops or run-time indexing read are copied to slots first.

Values selected by a run-time index are in slots with a regular stride: in their present slots if these have one,
otherwise in a contiguous range reserved for them. The selection is in a later chunk than the values.

A scatter, which writes a row at a run-time index, is a separate step between chunks. It changes slots in place if their
old values are not read later, otherwise a copy of them.

If an index is the same in all lanes, as in a loop over a table of constants, the selection is one load of a row of
lanes instead of a gather; `uniform` identifies such values.

Values of shared arrays have no slots: they are read directly, at an offset from a cursor (see `frame`). A loop that
traverses them with a regular stride advances its own cursor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from delassus.compiler.backends.frame import Cursor, Frame, Place, Table, find_step, find_table
from delassus.compiler.backends.in_place import InPlace, scatter_targets
from delassus.compiler.backends.pieces import APART, cut_into_pieces, frozen, ranges
from delassus.compiler.backends.steps import Chunk, LoopStep, ScatterStep, Schedule, Step, first_slots
from delassus.compiler.backends.uniform import uniform_values
from delassus.compiler.graph.program import Program, arguments

CHUNK = 400


def schedule(program: Program, chunk: int = CHUNK) -> Schedule:
    """The schedule of a program, with at most `chunk` operations in a chunk."""
    operands = (*program.inputs, *program.outputs)
    first = first_slots(operands)
    frame = Frame(sum(operand.slots for operand in operands))
    starts, outputs = first[: len(program.inputs)], first[len(program.inputs) :]
    roots = {k: frame.cursor(starts[k]) for k, operand in enumerate(program.inputs) if operand.shared}
    elements = {v: (n[1], n[2]) for v, n in enumerate(program.nodes) if n[0] == "input"}
    inputs = {v: starts[k] + i for v, (k, i) in elements.items() if k not in roots}
    shared = {v: (roots[k], i) for v, (k, i) in elements.items() if k in roots}
    planned = _Planner(program, frame, inputs, outputs, chunk, {}, shared, roots).plan(top=True)
    return replace(planned, frame=frame.size, cursors=frame.cursors)


class _Planner:
    """Assigns slots to a program, or to the body of a loop, in a frame."""

    def __init__(
        self,
        program: Program,
        frame: Frame,
        inputs: dict[int, int],
        outputs: Sequence[int | None],
        chunk: int,
        direct: dict[int, int],
        shared: dict[int, Place],
        roots: dict[int, Cursor],
        in_place: InPlace | None = None,
        uniform: frozenset[int] = frozenset(),
    ) -> None:
        """Plan `program`, whose inputs are in slots, `direct` or `shared`.

        `outputs` has the first slot of each output; None for an output that is stored item by item. Inputs that are
        `uniform` or shared have the same value in all lanes.
        """
        self.in_place = in_place or InPlace()
        self.uniform = uniform_values(program, uniform | shared.keys())
        self.scattered: set[int] = set()  # results of scatters, in tables that may be changed in place
        self.program, self.frame, self.outputs, self.chunk = program, frame, outputs, chunk
        self.slots, self.direct, self.shared, self.roots = dict(inputs), direct, shared, roots
        self.pieces = cut_into_pieces(program, chunk)
        self.defined_in: dict[int, int] = {}  # the piece that computes a value
        self.last_use: dict[int, int] = {}  # the last piece that uses a value
        for p, piece in enumerate(self.pieces):
            for value in piece:
                self.defined_in[value] = p
                for argument in arguments(program.nodes[value]):
                    if argument > 0:
                        self.last_use[argument] = p
        self.parts: dict[int, dict[int, int]] = {}  # by loop: the parts that are used
        for value, node in enumerate(program.nodes):
            if node[0] == "part":
                self.parts.setdefault(node[1], {})[node[2]] = value
                self.defined_in[value] = self.defined_in[node[1]]
        self.freed_after: list[list[int]] = [[] for _ in self.pieces]  # by piece: the slots that are free after it
        self.stores: list[dict[int, list[int]]] = [{} for _ in self.pieces]
        self.keeps: list[dict[int, list[int]]] = [{} for _ in self.pieces]
        self.rows: dict[int, Table] = {}
        self.gathered: dict[tuple[int, ...], list[int]] = {}  # by candidate values: the gathers that select from them
        for value, node in enumerate(program.nodes):
            if node[0] == "gather":
                self.gathered.setdefault(node[2:], []).append(value)
        self.reserved: dict[tuple[int, ...], int] = {}  # by candidate values: first slot of the row reserved for them
        self.homes = {v: (key, k) for key in reversed(self.gathered) for k, v in enumerate(key)}

    def plan(self, top: bool) -> Schedule:
        """The schedule; with `top`, slots of inputs are free after their last use."""
        steps: list[Step] = []
        constant_outputs = self._place_results(top)
        if top:
            for value, slot in self.slots.items():
                if self.program.nodes[value][0] == "input":
                    self.freed_after[self.last_use.get(value, 0)].append(slot)
        for p, piece in enumerate(self.pieces):
            kind = self._kind(p)
            if kind == "loop":
                steps += self._loop(p)
            elif kind == "scatter":
                steps += self._scatter(p)
            else:
                steps += self._fill_rows(piece)
                for value in piece:
                    if self.last_use.get(value, p) > p and value not in self.slots:
                        self.slots[value] = self._home(value)
                        self.stores[p].setdefault(value, []).append(self.slots[value])
                        self.freed_after[self.last_use[value]].append(self.slots[value])
                steps += self._chunks(piece, frozen(self.stores[p]), frozen(self.keeps[p]))
            self.frame.free.extend(self.freed_after[p])
        locations = (self.slots, self.direct, self.rows, self.shared, self.roots, constant_outputs, self.uniform)
        return Schedule(self.program, tuple(steps), *locations, self.frame.size, self.frame.cursors)

    def _home(self, value: int) -> int:
        """A slot for a computed value: in the row reserved for a gather from it, if there is one."""
        if value not in self.homes:
            return self.frame.one()
        key, k = self.homes[value]
        if key not in self.reserved:
            self.reserved[key] = self.frame.row(len(key))
        return self.reserved[key] + k

    def _fill_rows(self, piece: tuple[int, ...]) -> list[Step]:
        """Assign tables to the gathers of a piece; returns the steps that copy values into them."""
        moves: dict[int, list[int]] = {}
        for value in piece:
            key = self.program.nodes[value][2:] if self.program.nodes[value][0] == "gather" else ()
            if not key or value in self.rows:
                continue
            table = None
            if key not in self.reserved:
                table = find_table([{self.slots[v]} if v in self.slots else set() for v in key], 1, len(key))
            if table is None:
                if key not in self.reserved:
                    self.reserved[key] = self.frame.row(len(key))
                table = Table(self.reserved[key], 0, 1)
                for source, slot in zip(key, table.slots(1, len(key)), strict=True):
                    if self.slots.get(source) != slot:
                        moves.setdefault(source, []).append(slot)
                        self.freed_after[self.defined_in[self.gathered[key][-1]]].append(slot)
            self.rows |= dict.fromkeys(self.gathered[key], table)
        return self._chunks((), frozen(moves), {}) if moves else []

    def _is_uniform(self, value: int) -> bool:
        return value <= 0 or value in self.uniform

    def _kind(self, p: int) -> str:
        """The type of a piece: "loop", "scatter" or "chunk"."""
        piece = self.pieces[p]
        kind = self.program.nodes[piece[0]][0] if len(piece) == 1 else ""
        return kind if kind in APART else "chunk"

    def _place_results(self, top: bool) -> dict[int, tuple[int, ...]]:
        """Assign the stores of results: to the piece that computes them, or to a chunk after a loop that returns them.

        Returns the slots of constant results.
        """
        constant_outputs: dict[int, list[int]] = {}
        output_slots = self._slots_in_outputs()
        for start, result in zip(self.outputs, self.program.results, strict=True):
            for k, value in enumerate(result):
                if start is not None and k in self.in_place.settled:
                    continue
                slot = k if start is None else start + k
                if value <= 0 and top:
                    constant_outputs.setdefault(value, []).append(slot)
                    continue
                p = self.defined_in.get(value, 0)
                if value > 0 and self.program.nodes[value][0] == "part":
                    if output_slots.get(value) == slot and start is not None:
                        continue
                    p += 1
                while self._kind(p) != "chunk":  # the last piece is one
                    p += 1
                if value > 0:
                    self.last_use[value] = max(p, self.last_use.get(value, 0))
                if start is None:
                    self.keeps[p].setdefault(value, []).append(slot)
                    continue
                if p == self.defined_in.get(value) and value not in output_slots:
                    self.slots.setdefault(value, slot)
                self.stores[p].setdefault(value, []).append(slot)
        return frozen(constant_outputs)

    def _slots_in_outputs(self) -> dict[int, int]:
        """Slots of results that loops store directly in outputs, which requires a regular stride.

        Unused results of the loop may be stored there as well, if the final value of the slot is computed later.
        """
        slots_by_value: dict[int | None, set[int]] = {}
        later: dict[int, int] = {}  # by slot: the piece that computes its value
        for start, result in zip(self.outputs, self.program.results, strict=True):
            for k, value in enumerate(result):
                if start is not None and value > 0:
                    slots_by_value.setdefault(value, set()).add(start + k)
                    later[start + k] = self.defined_in.get(value, -1)
        direct_slots: dict[int, int] = {}
        self.tables: dict[int, Table] = {}
        for value, parts in self.parts.items():
            if self.program.nodes[value][0] != "loop":
                continue
            loop, p = self.program.loops[self.program.nodes[value][1]], self.defined_in[value]
            outputs = [parts.get(k) for k in range(loop.carry_count, loop.parts)]
            unused = {slot for slot in later if later[slot] >= p}
            decisive = (0, 1, loop.stored_count)  # these determine the strides, so they must be outputs
            allowed = [slots_by_value.get(k, set()) if k or n in decisive else unused for n, k in enumerate(outputs)]
            table = find_table(allowed, loop.count, loop.stored_count)
            slots = [] if table is None else table.slots(loop.count, loop.stored_count)
            if table is not None and len(set(slots)) == len(slots):
                self.tables[value] = table
                direct_slots |= {k: slot for k, slot in zip(outputs, slots, strict=True) if k is not None}
        return direct_slots

    def _loop(self, p: int) -> list[Step]:
        """The steps of a loop: a chunk that copies its inputs to their slots, and the loop itself."""
        (value,) = self.pieces[p]
        node, frame, slots = self.program.nodes[value], self.frame, self.slots
        loop = self.program.loops[node[1]]
        first, items, captured = loop.split(arguments(node))
        items = items if loop.item else []  # there may be millions of empty items
        moves: dict[int, list[int]] = {}
        carried, onward = frame.row(loop.carry_count), frame.row(loop.carry_count)
        released = [*range(onward, onward + loop.carry_count)]
        for k, source in enumerate(first):
            moves.setdefault(source, []).append(carried + k)

        shared, cursors = self._walk(items)
        unshared = [k for k in range(loop.item) if k not in shared]
        item_values = [values[k] for values in items for k in unshared]
        item_table = find_table([{slots[v]} if v in slots else set() for v in item_values], loop.count, len(unshared))
        if item_table is None:
            item_table, reserved = frame.table(loop, len(unshared))
            released += reserved
            for source, slot in zip(item_values, item_table.slots(loop.count, len(unshared)), strict=True):
                moves.setdefault(source, []).append(slot)

        table = self.tables.get(value)
        parts = self.parts.get(value, {})
        carry_slots = {k: carried + k for k in range(loop.carry_count)}
        if table is None:
            table, reserved = frame.table(loop, loop.stored_count)
            output_slots = table.slots(loop.count, loop.stored_count)
            carry_slots |= dict(enumerate(output_slots, loop.carry_count))
            released += sorted(set(reserved) - set(output_slots))
        else:
            for n, slot in enumerate(table.slots(loop.count, loop.stored_count), loop.carry_count):
                if n in parts:
                    slots[parts[n]] = slot

        value_slots = {(0, k): carried + k for k in range(loop.carry_count)}
        shared_locations: dict[tuple[int, int], Place] = {(1, k): place for k, place in shared.items()}
        for k, source in enumerate(captured):
            if source in self.shared:
                shared_locations[2, k] = self.shared[source]
            elif source <= 0:
                value_slots[2, k] = frame.one()
                released.append(value_slots[2, k])
                moves.setdefault(source, []).append(value_slots[2, k])
            else:
                value_slots[2, k] = slots[source]
        nodes = loop.body.nodes
        indexed = {a for n in nodes if n[0] in ("loop", "gather", "scatter") for a in n[2:]}
        positions = {k: n for n, k in enumerate(unshared)}
        copies = sorted(
            n[2] for v, n in enumerate(nodes) if n[:2] == ("input", 1) and v in indexed and n[2] in positions
        )
        row = frame.row(len(copies))
        copied = {positions[k]: row + n for n, k in enumerate(copies)}
        released += copied.values()
        value_slots |= {(1, k): row + n for n, k in enumerate(copies)}
        inputs = {v: (n[1], n[2]) for v, n in enumerate(nodes) if n[0] == "input"}
        input_slots = {v: value_slots[place] for v, place in inputs.items() if place in value_slots}
        shared_places = {v: shared_locations[place] for v, place in inputs.items() if place in shared_locations}
        direct = {
            v: positions[place[1]]
            for v, place in inputs.items()
            if place not in value_slots and place not in shared_locations
        }
        uniform_items = {
            (1, k) for k, column in enumerate(zip(*items, strict=True)) if all(map(self._is_uniform, column))
        }
        uniform_items |= {(2, k) for k, source in enumerate(captured) if self._is_uniform(source)}
        uniform = frozenset(v for v, place in inputs.items() if place in uniform_items)
        in_place, result_slots = InPlace.of(loop.body), (onward, None)
        planner = _Planner(
            loop.body,
            frame,
            input_slots,
            result_slots,
            self.chunk,
            direct,
            shared_places,
            self.roots,
            in_place,
            uniform,
        )
        body = planner.plan(top=False)
        released += [slot for _, _, target in cursors for slot in (target.slot, target.slot + 1)]

        for k, slot in carry_slots.items():
            if k in parts:
                slots[parts[k]] = slot
                self.freed_after[self.last_use.get(parts[k], p)].append(slot)
            else:
                released.append(slot)
        self.freed_after[p] += released
        copied_positions = ranges(k for k in range(loop.carry_count) if k not in in_place.settled)
        step = LoopStep(
            loop, body, carried, onward, copied_positions, item_table, len(unshared), copied, table, cursors
        )
        return [*self._chunks((), frozen(moves), {}), step] if moves else [step]

    def _scatter(self, p: int) -> list[Step]:
        """The steps of a scatter: a chunk that copies values to their slots, if necessary, and the write."""
        (value,) = self.pieces[p]
        node, frame = self.program.nodes[value], self.frame
        rows, index, targets = node[1], node[2], scatter_targets(node)
        columns = len(targets) // rows
        in_place = all(v in self.scattered and self.last_use[v] == p for v in targets)
        table = None
        if in_place or value in self.in_place.scatters:
            table = find_table([{self.slots[v]} for v in targets], rows, columns)
        moves: dict[int, list[int]] = {}
        if table is None:
            in_place, table = True, Table(frame.row(len(targets)), columns, 1)
            for source, slot in zip(targets, table.slots(rows, columns), strict=True):
                moves.setdefault(source, []).append(slot)
        slots = table.slots(rows, columns)
        slot_set = set(slots)
        self.freed_after[p] = [slot for slot in self.freed_after[p] if slot not in slot_set]
        parts = self.parts.get(value, {})
        for k, slot in enumerate(slots):
            if k in parts:
                self.slots[parts[k]] = slot
            if in_place:
                self.scattered.update([parts[k]] if k in parts else [])
                self.freed_after[self.last_use.get(parts.get(k, 0), p)].append(slot)

        def slot_of(source: int) -> int:
            if source in self.slots:
                return self.slots[source]
            if source not in moves or all(slot in slot_set for slot in moves[source]):
                moves.setdefault(source, []).append(frame.one())
                self.freed_after[p].append(moves[source][-1])
            return moves[source][-1]

        step = ScatterStep(slot_of(index), tuple(slot_of(v) for v in node[3 : 3 + columns]), table)
        return [*self._chunks((), frozen(moves), {}), step] if moves else [step]

    def _walk(self, items: Sequence[Sequence[int]]) -> tuple[dict[int, Place], tuple[tuple[Cursor, int, Cursor], ...]]:
        """Positions in the items of a loop that traverse shared arrays, with their locations, and cursors for them."""
        cursors: dict[tuple[Cursor, int], Cursor] = {}
        shared: dict[int, Place] = {}
        for k, column in enumerate(zip(*items, strict=True)):
            first, step = self.shared.get(column[0]), find_step([self.shared.get(v) for v in column])
            if first is not None and step is not None:
                key = (first[0], step)
                if key not in cursors:
                    cursors[key] = self.frame.cursor()
                shared[k] = (cursors[key], first[1])
        return shared, tuple((source, step, target) for (source, step), target in cursors.items())

    def _chunks(
        self, values: tuple[int, ...], stores: dict[int, tuple[int, ...]], keeps: dict[int, tuple[int, ...]]
    ) -> list[Step]:
        """A chunk. Stores of values that it does not compute are in separate chunks, if there are many."""
        computed = set(values)
        moves = [
            (kind, value, place)
            for kind, places in enumerate((stores, keeps))
            for value, places_of_value in places.items()
            if value not in computed
            for place in places_of_value
        ]
        if len(moves) <= self.chunk:
            return [Chunk(values, stores, keeps)]
        chunks: list[Step] = []
        for k in range(0, len(moves), self.chunk):
            parts: tuple[dict[int, list[int]], dict[int, list[int]]] = ({}, {})
            for kind, value, place in moves[k : k + self.chunk]:
                parts[kind].setdefault(value, []).append(place)
            chunks.append(Chunk((), *map(frozen, parts)))
        rest = ({v: places[v] for v in values if v in places} for places in (stores, keeps))
        return [*chunks, Chunk(values, *rest)]
