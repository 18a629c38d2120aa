"""From a graph to straight-line code in pieces: an order of the operations, cut into chunks, values in slots.

One function of many thousand operations takes LLVM long to compile and runs out of registers; many functions of
about `CHUNK` operations compile in linear time. A value used in a later chunk goes there through a slot of a
frame in memory; slots are reused as soon as their value is dead, so that the frame stays in the first-level
cache. Inputs arrive in slots and outputs leave from slots.
"""

from dataclasses import dataclass
from functools import cached_property

from delassus.compiler.program import Program, arguments

CHUNK = 400


@dataclass(frozen=True)
class Schedule:
    """A program ready for a back end.

    The frame holds the inputs one after the other (`input_slots[k]` is the first slot of input k), then the
    outputs (`output_slots[k]`), then everything else. `chunks` holds the values to compute, `slots` the slot of
    every value that lives in the frame when it is not in a register.
    """

    program: Program
    chunks: tuple[tuple[int, ...], ...]
    slots: dict[int, int]
    stores: tuple[dict[int, tuple[int, ...]], ...]
    input_slots: tuple[int, ...]
    output_slots: tuple[int, ...]
    frame: int

    @cached_property
    def live(self) -> int:
        """Slots of the frame beyond inputs and outputs."""
        ends = [s + o.size for s, o in zip(self.output_slots, self.program.outputs, strict=True)]
        return self.frame - max(ends, default=0)


def schedule(program: Program, chunk: int = CHUNK) -> Schedule:
    """Order, cut and assign slots."""
    order = _order(program)
    chunks = tuple(tuple(order[i : i + chunk]) for i in range(0, len(order), chunk))
    if not chunks:
        chunks = ((),)
    return _assign(program, chunks)


def _order(program: Program) -> list[int]:
    return [v for v, n in enumerate(program.nodes) if v and n[0] != "input"]


def _assign(program: Program, chunks: tuple[tuple[int, ...], ...]) -> Schedule:
    nodes = program.nodes
    input_slots, output_slots = [], []
    frame = 0
    for operand in program.inputs:
        input_slots.append(frame)
        frame += operand.size
    for operand in program.outputs:
        output_slots.append(frame)
        frame += operand.size

    last: dict[int, int] = {}  # the last chunk that uses a value
    born: dict[int, int] = {}  # the chunk that computes it
    for c, chunk in enumerate(chunks):
        for value in chunk:
            born[value] = c
            for argument in arguments(nodes[value]):
                if argument > 0:
                    last[argument] = c

    slots: dict[int, int] = {}
    dying: list[list[int]] = [[] for _ in chunks]
    for value, node in enumerate(nodes):
        if node[0] == "input":
            slots[value] = input_slots[node[1]] + node[2]
            dying[last.get(value, 0)].append(slots[value])

    stores: list[dict[int, list[int]]] = [{} for _ in chunks]
    for first, result in zip(output_slots, program.results, strict=True):
        for k, value in enumerate(result):
            stores[born.get(value, 0)].setdefault(value, []).append(first + k)
            if value in born:
                slots.setdefault(value, first + k)

    free: list[int] = []
    for c, chunk in enumerate(chunks):
        for value in chunk:
            if last.get(value, c) > c and value not in slots:
                if free:
                    slots[value] = free.pop()
                else:
                    slots[value], frame = frame, frame + 1
                stores[c].setdefault(value, []).append(slots[value])
                dying[last[value]].append(slots[value])
        free.extend(dying[c])
    return Schedule(
        program,
        chunks,
        slots,
        tuple({v: tuple(s) for v, s in d.items()} for d in stores),
        tuple(input_slots),
        tuple(output_slots),
        frame,
    )
