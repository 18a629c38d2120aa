"""The differential of a loop, which is a loop itself.

In forward mode, tangents are carried along with their values, and the loop ends with the original one. In reverse mode,
a loop stores the inputs of every iteration, and another one runs backward with the cotangents, adding up those of
captured values; this needs a known number of iterations. A branch, which is a loop with at most one iteration, has a
branch as its differential in both modes.

Only values that depend on an active argument have a tangent or cotangent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Protocol

from delassus.compiler.graph.graph import ZERO, Builder
from delassus.compiler.graph.program import LOGICAL, Loop, Operand, Program, arguments
from delassus.compiler.graph.replay import replay
from delassus.errors import DelassusError


class DerivativeError(DelassusError):
    """A derivative does not exist in this form: an operation has no rule, or shapes and values do not fit."""

    code = "not-differentiable"


class Linear(Protocol):
    """What is needed of a tape, which is handed in, as tapes use this module."""

    values: list[int]

    def push(self, tangents: Sequence[int]) -> list[int]:
        """Tangents of the outputs."""

    def pull(self, cotangents: Sequence[int]) -> list[int]:
        """Cotangents of the inputs."""


MakeTape = Callable[[Builder, Callable[[list[int]], Sequence[int]], Sequence[int]], Linear]


def active_parts(loop: Loop, active: Collection[int]) -> set[int]:
    """Which parts of a loop depend on some of its arguments, given by position."""
    if not active:
        return set()
    carried, _, _, kept = _activity(loop, active)
    table = [loop.carry_count + i * loop.stored_count + k for i in range(loop.count) for k in kept]
    return {*carried, *table}


def push(make: MakeTape, g: Builder, loop: Loop, values: Sequence[int], tangents: dict[int, int]) -> dict[int, int]:
    """The tangents of the parts of a loop over some values, for tangents of values by position."""
    carried, item, captured, kept = _activity(loop, tangents)
    body = Builder()
    inputs = _inputs(body, loop)
    d_inputs = _inputs(body, loop, (carried, item, captured))
    tape = _tape(make, body, loop, inputs, (carried, item, captured))
    tangent_values = tape.push([v for values in d_inputs for v in values])
    kept_tangents = [tangent_values[loop.carry_count + k] for k in kept]
    results = ([*tape.values[: loop.carry_count], *(tangent_values[k] for k in carried)], kept_tangents)
    sizes = [len(a) + len(b) for a, b in zip(inputs, d_inputs, strict=True)]
    new_loop = replace(loop, body=_body(body, sizes, results))

    first, items, around = loop.split(values)
    d_first, d_items, d_around = loop.split([tangents.get(k, ZERO) for k in range(len(values))])
    arguments = [*first, *(d_first[k] for k in carried)]
    for row, d_row in zip(items, d_items, strict=True):
        arguments += [*row, *(d_row[k] for k in item)]
    arguments += [*around, *(d_around[k] for k in captured)]
    parts = g.loop(new_loop, arguments)
    result = {k: parts[loop.carry_count + n] for n, k in enumerate(carried)}
    for i in range(loop.count):
        start = new_loop.carry_count + i * len(kept)
        result |= {loop.carry_count + i * loop.stored_count + k: parts[start + n] for n, k in enumerate(kept)}
    return result


def pull(
    make: MakeTape,
    g: Builder,
    loop: Loop,
    values: Sequence[int],
    active: Collection[int],
    cotangents: dict[int, int],
) -> dict[int, int]:
    """The cotangents of active values of a loop, by position, for cotangents of its parts, by number."""
    if loop.conditional and loop.count > 1:
        raise DerivativeError(
            "a vjp (or a gradient, or a Jacobian by rows) cannot pass backwards through a while_loop, whose number of "
            "iterations is known at run time only: use jvp, or jacobian(..., mode='forward'), or replace the loop by a "
            "scan of fixed length.",
            code="not-differentiable",
        )
    carried, item, captured, kept = _activity(loop, active)
    first, items, around = loop.split(values)
    saved = [list(first)] if loop.conditional else _save(g, loop, values)

    body = Builder()
    # The inputs of the loop that walks back: what tells whether a branch was executed; cotangents to carry; what one
    # execution got, with cotangents of what it kept; and what it captured.
    flag = int(loop.conditional)
    body_inputs = [body.emit(("input", 0, flag + k)) for k in range(len(carried) + len(captured))]
    got = [body.emit(("input", 1, k)) for k in range(loop.carry_count + loop.item + len(kept))]
    inputs = (got[: loop.carry_count], got[loop.carry_count : loop.carry_count + loop.item], _inputs(body, loop)[2])
    tape = _tape(make, body, loop, inputs, (carried, item, captured))
    seeds = [ZERO] * (loop.carry_count + loop.stored_count)
    for n, k in enumerate(carried):
        seeds[k] = body_inputs[n]
    for n, k in enumerate(kept):
        seeds[loop.carry_count + k] = got[loop.carry_count + loop.item + n]
    cotangent_values = tape.pull(seeds)
    sums = [
        body.add(body_inputs[len(carried) + n], cotangent_values[len(carried) + len(item) + n])
        for n in range(len(captured))
    ]
    results = (
        [*[ZERO] * flag, *cotangent_values[: len(carried)], *sums],
        cotangent_values[len(carried) : len(carried) + len(item)],
    )
    sizes = [flag + len(body_inputs), len(got), len(around)]
    new_loop = Loop(_body(body, sizes, results), loop.count, not loop.reverse, loop.conditional)

    arguments = [*first[:flag], *(cotangents.get(k, ZERO) for k in carried), *([ZERO] * len(captured))]
    for i, row in enumerate(items):
        seeds_of_outputs = [cotangents.get(loop.carry_count + i * loop.stored_count + k, ZERO) for k in kept]
        arguments += [*saved[i], *row, *seeds_of_outputs]
    loop_value = g.loop(new_loop, [*arguments, *around])
    parts = loop_value[flag:]
    result = {k: parts[n] for n, k in enumerate(carried) if k in active}
    start = loop.carry_count + loop.count * loop.item
    result |= {start + k: parts[len(carried) + n] for n, k in enumerate(captured)}
    for i in range(loop.count):
        row = loop_value[new_loop.carry_count + i * len(item) :]
        positions = [loop.carry_count + i * loop.item + k for k in item]
        result |= {position: row[n] for n, position in enumerate(positions) if position in active}
    return result


def _save(g: Builder, loop: Loop, values: Sequence[int]) -> list[list[int]]:
    """What every execution of a loop's body was carried, by running the loop once more, keeping that."""
    body = Builder()
    inputs = _inputs(body, loop)
    carried, _ = replay(body, loop.body, inputs)
    sizes = [len(part) for part in inputs]
    saving_loop = replace(loop, body=_body(body, sizes, (carried, inputs[0])))
    parts = g.loop(saving_loop, values)[loop.carry_count :]
    return [parts[i * loop.carry_count : (i + 1) * loop.carry_count] for i in range(loop.count)]


def _inputs(g: Builder, loop: Loop, active: Sequence[Sequence[int]] | None = None) -> list[list[int]]:
    """Inputs of a new body: those of the loop's own, or, after them, one more for each chosen one."""
    sizes = [operand.size for operand in loop.body.inputs]
    if active is None:
        return [[g.emit(("input", k, i)) for i in range(size)] for k, size in enumerate(sizes)]
    return [
        [g.emit(("input", k, size + i)) for i in range(len(active_part))]
        for k, (size, active_part) in enumerate(zip(sizes, active, strict=True))
    ]


def _tape(
    make: MakeTape, g: Builder, loop: Loop, inputs: Sequence[Sequence[int]], active: Sequence[Sequence[int]]
) -> Linear:
    """The body of a loop as a function of the chosen inputs, at `inputs`."""
    positions = [(k, i) for k, active_part in enumerate(active) for i in active_part]

    def run(values: list[int]) -> list[int]:
        filled = [list(part) for part in inputs]
        for (k, i), value in zip(positions, values, strict=True):
            filled[k][i] = value
        carried, kept = replay(g, loop.body, filled)
        return [*carried, *kept]

    return make(g, run, [inputs[k][i] for k, i in positions])


def _body(g: Builder, sizes: Sequence[int], results: tuple[Sequence[int], Sequence[int]]) -> Program:
    inputs = tuple(Operand(n, (s,)) for n, s in zip(("carried", "item", "captured"), sizes, strict=True))
    outputs = tuple(Operand(n, (len(r),)) for n, r in zip(("carried", "kept"), results, strict=True))
    return g.finish(inputs, outputs, tuple(tuple(r) for r in results))


def _activity(loop: Loop, active: Collection[int]) -> tuple[list[int], list[int], list[int], list[int]]:
    """Which carried values, values of items, captured values and kept values depend on active arguments."""
    end = loop.carry_count + loop.count * loop.item
    carried = {k for k in active if k < loop.carry_count}
    item = {(k - loop.carry_count) % loop.item for k in active if loop.carry_count <= k < end}
    captured = {k - end for k in active if k >= end}
    while True:
        reached, kept = _dependent(loop.body, (carried, item, captured))
        if reached <= carried:
            return sorted(carried), sorted(item), sorted(captured), sorted(kept)
        carried |= reached


def _dependent(program: Program, active: tuple[set[int], set[int], set[int]]) -> tuple[set[int], set[int]]:
    """The results that depend on some inputs."""
    varied: set[int] = set()
    for value, node in enumerate(program.nodes):
        if node[0] == "input":
            if node[2] in active[node[1]]:
                varied.add(value)
        elif node[0] not in LOGICAL and not varied.isdisjoint(arguments(node)):
            varied.add(value)
    carried, kept = ({k for k, v in enumerate(result) if v in varied} for result in program.results)
    return carried, kept
