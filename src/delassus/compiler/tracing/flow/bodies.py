"""Inputs and outputs of bodies of loops and branches during tracing.

A body is recorded in a trace of its own and becomes a program. Its inputs and outputs are flat arrays; variables of the
enclosing scope are captured. Operations on captured values only are computed once, outside of a loop; in a branch they
stay inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from delassus.compiler.graph.program import Operand, Program, arguments
from delassus.compiler.graph.replay import remake
from delassus.compiler.tracing.array import Array, Recording
from delassus.compiler.tracing.trace import CAPTURED, Trace, builder_type
from delassus.errors import DelassusError


class LoopError(DelassusError):
    """An invalid loop: no bound, nothing to iterate over, or a body that returns another structure than it received."""

    code = "bad-loop"


def inputs_of(
    trace: Recording, operand: int, arrays: Sequence[Array], shape: Callable[[Array], Any]
) -> Iterator[Array]:
    """One array of the body for each of some arrays around it; booleans come as numbers and are made such again."""
    start = 0
    for x in arrays:
        size = int(np.prod(shape(x)))
        ids = [trace.builder.emit(("input", operand, start + k)) for k in range(size)]
        yield array_of(trace, np.array(ids, np.int64).reshape(shape(x)), x.truths)
        start += size


def array_of(trace: Recording, ids: Any, truths: bool) -> Array:
    """Numbers that come out of a body or go into it, as an array of the kind that they stand for."""
    array = Array(trace, ids)
    if not truths:
        return array
    trace.flags.update(ids.ravel().tolist())
    return array.astype(bool)


def arrays_of(trace: Recording, parts: list[int], arrays: Sequence[Array]) -> Iterator[Array]:
    """Parts of a loop as arrays like some others."""
    start = 0
    for x in arrays:
        ids = np.array(parts[start : start + x.size], np.int64).reshape(x.shape)
        yield array_of(trace, ids, x.truths)
        start += x.size


def numbers_of(x: Array) -> list[int]:
    """The values of an array; booleans as 1.0 and 0.0."""
    return [x.origin.builder.number(i) for i in x.ids.ravel().tolist()]


def keep_unless(active: Array, new: Sequence[Array]) -> Iterator[Array]:
    """What a state carries on that may have left a loop, as numbers: new arrays if it takes part, or else the old ones.

    The carried values are whether it takes part, then the arrays. Booleans are chosen between as the numbers that
    they are in memory, which is one operation instead of several of logic.
    """
    g, takes_part = active.origin.builder, active.ids.item()
    old = iter([g.emit(("input", 0, 1 + k)) for k in range(sum(x.size for x in new))])
    for x in new:
        ids = [g.select(takes_part, value, next(old)) for value in numbers_of(x)]
        yield Array(active.origin, np.array(ids, np.int64).reshape(x.shape))


def while_active(trace: Recording, go: Array) -> Array:
    """A condition, for states that take part: one that has left a loop around this place does not."""
    around: Recording | None = trace
    while around is not None and around.active is None:
        around = around.parent
    result: Array = go if around is None else go & trace.lift(around.active)
    return result


def kind_of(x: Any) -> str:
    """What an array holds, in words."""
    return "booleans" if x.dtype == bool else "numbers"


def one_truth(name: str, example: str, x: Any) -> Any:
    """What a condition is, if it can be one: a single boolean."""
    if x.shape != () or x.dtype != bool:
        raise LoopError(
            f"{name}: the condition is one boolean, such as {example}; it must be {kind_of(x)} of shape {x.shape}. Use "
            "np.any or np.all to join several.",
            code="bad-loop",
        )
    return x


def finish_body(
    inner: Trace, trace: Recording, sizes: tuple[int, int], results: Sequence[Sequence[Array]], hoist: bool = True
) -> tuple[Program, list[int]]:
    """The body as a program, and the values that it captures; `hoist` takes out what depends on those alone."""
    flat = tuple(tuple(i for x in arrays for i in numbers_of(x)) for arrays in results)
    names = ("carried", "item", "captured")
    inputs = [Operand(n, (s,)) for n, s in zip(names, (*sizes, len(inner.captured)), strict=True)]
    outputs = tuple(Operand(n, (len(values),)) for n, values in zip(("carried", "kept"), flat, strict=True))
    whole = inner.builder.finish(tuple(inputs), outputs, flat)

    outer, g = trace.builder, builder_type.get()()
    around: dict[int, int] = {-k: outer.constant(c) for k, c in enumerate(whole.constants)}
    inside: dict[int, int] = {-k: g.constant(c) for k, c in enumerate(whole.constants)}
    captured: dict[int, int] = {}
    sources = list(inner.captured)

    def enter_value(value: int) -> int:
        """A value from around the loop, as one of the body."""
        if value not in inside:
            source, logical = outer.number(around[value]), outer.is_logical(around[value])
            if source <= 0:
                inside[value] = g.constant(outer.constants[-around[value]])
            else:
                made = g.emit(("input", CAPTURED, captured.setdefault(source, len(captured))))
                inside[value] = g.ne(made, 0) if logical else made
        return inside[value]

    for value, node in enumerate(whole.nodes):
        if node[0] == "input":
            if node[1] == CAPTURED:
                around[value] = sources[node[2]]
            else:
                inside[value] = g.emit(node)
        elif value:
            args = arguments(node)
            if hoist and all(a in around for a in args):
                around[value] = remake(outer, node, [around[a] for a in args], whole.loops)
            else:
                inside[value] = remake(g, node, [enter_value(a) for a in args], whole.loops)
    final = tuple(tuple(enter_value(v) for v in values) for values in whole.results)
    inputs[CAPTURED] = Operand(names[CAPTURED], (len(captured),))
    program = g.finish(tuple(inputs), outputs, final)
    return program, list(captured)
