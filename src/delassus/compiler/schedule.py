"""From a graph to straight-line code in pieces: an order of the operations, cut into chunks, values in slots.

One function of many thousand operations takes LLVM long to compile and runs out of registers; many functions of
about `CHUNK` operations compile in linear time. A value used in a later chunk goes there through a slot of a
frame in memory; slots are reused as soon as their value is dead, so that the frame stays in the first-level
cache. Inputs arrive in slots and outputs leave from slots.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from delassus.compiler.program import Operand, Program, arguments

CHUNK = 400


@dataclass(frozen=True)
class Schedule:
    """A program ready for a back end.

    The frame holds inputs and outputs (see `first_slots`), then everything else. `chunks` holds the values to
    compute, `slots` the slot of every value that is read from the frame, and `stores`, for each chunk, the slots
    that its values go to.
    """

    program: Program
    chunks: tuple[tuple[int, ...], ...]
    slots: dict[int, int]
    stores: tuple[dict[int, tuple[int, ...]], ...]
    frame: int


def first_slots(operands: Sequence[Operand]) -> list[int]:
    """Where each operand starts in the frame: inputs one after the other, then outputs."""
    return [0, *accumulate(operand.size for operand in operands)][: len(operands)]


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
    operands = (*program.inputs, *program.outputs)
    first = first_slots(operands)
    input_slots, output_slots = first[: len(program.inputs)], first[len(program.inputs) :]
    frame = sum(operand.size for operand in operands)

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
    for start, result in zip(output_slots, program.results, strict=True):
        for k, value in enumerate(result):
            stores[born.get(value, 0)].setdefault(value, []).append(start + k)
            if value in born:
                slots.setdefault(value, start + k)

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
        frame,
    )
