"""Loops in kernels: `scan`, `map` and `while_loop`.

    carry, kept = scan(body, carry, stacks)            carry, out = body(carry, item), once for each item
    outs = map(body, stacks)                           out = body(item), once for each item
    carry = while_loop(condition, body, carry, bound)  carry = body(carry), while condition(carry), at most bound times

A plain `for` in a kernel is unrolled: right for the recursion over a tree, whose operations all differ, and too much
code for dense algebra and for iterations. These functions trace their body once and compile to a loop of machine code.
Outside a kernel, on numbers, they just loop.

What is carried, items and results are arrays, numbers, or nests of tuples of them. Stacks are arrays whose first axis
is walked along; what the body keeps is stacked in the same way. The body may use any array from around it. It must
return what it carries in the shapes and kinds (numbers or truth values) it got.

States that are computed together in the lanes of a vector may need different numbers of iterations of a `while_loop`.
The loop goes on until all of them are done, and those that are done keep their values: the result of a state does not
depend on its neighbours. A state whose condition compares a NaN leaves the loop at once.

Cost: of the loop's own, a few instructions for each carried value and item in each iteration.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from delassus.compiler.array import Array
from delassus.compiler.graph import Builder
from delassus.compiler.handlers import HANDLERS
from delassus.compiler.nests import leaves, like
from delassus.compiler.program import Loop, Operand, Program, arguments
from delassus.compiler.replay import remake
from delassus.compiler.trace import CAPTURED, Trace, builder_type, current, trace_of
from delassus.errors import DelassusError


class LoopError(DelassusError):
    """A loop cannot be made: no bound, nothing to walk along, or a body that returns something else than it got."""


def scan(
    body: Callable[[Any, Any], tuple[Any, Any]],
    carry: Any,
    stacks: Any = None,
    *,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Walk along stacks with something in hand: `carry, out = body(carry, item)`; returns the last carry and all outs.

    Args:
        body: A function of the carry and an item (None if there are no stacks).
        carry: What the first call gets.
        stacks: Arrays of one length in their first axis.
        length: How many times, if there are no stacks.
        reverse: Whether to start at the end; outs stay next to their items.
    """
    count = _length("scan", stacks, length)
    trace = current() or trace_of(carry, stacks)
    if trace is None:
        return _walk(body, carry, stacks, count, reverse)
    first = [trace.lift(x) for x in leaves(carry)]
    walked = [] if stacks is None else [trace.lift(x) for x in leaves(stacks)]
    inner = Trace(trace)
    with inner.recording():
        held = list(_inputs(inner, 0, first, lambda x: x.shape))
        item = None if stacks is None else like(stacks, _inputs(inner, 1, walked, lambda x: x.shape[1:]))
        new, out = _pair(body(like(carry, iter(held)), item))
        carried = _checked(inner, "scan", carry, held, new)
        outs = [] if out is None else [inner.lift(x) for x in leaves(out)]
    items = [i for k in range(count) for x in walked for i in _numbers(x[k])]
    sizes = (sum(x.size for x in first), sum(x.size // count for x in walked))
    program, captured = _finish(inner, trace, sizes, [carried, outs])
    parts = trace.builder.loop(
        Loop(program, count, reverse), [*(i for x in first for i in _numbers(x)), *items, *captured]
    )
    end = like(carry, _arrays(trace, parts[: sizes[0]], first))
    table = np.array(parts[sizes[0] :], np.int64).reshape(count, -1)
    ends = np.cumsum([x.size for x in outs]).tolist()
    kept = (
        _array(trace, table[:, e - x.size : e].reshape(count, *x.shape), x.truths)
        for e, x in zip(ends, outs, strict=True)
    )
    return end, None if out is None else like(out, kept)


def map(body: Callable[..., Any], *stacks: Any) -> Any:
    """What a function of one item of each stack gives, stacked: as if it were called in a list comprehension."""
    return scan(lambda _, item: ((), body(*item)), (), stacks)[1]


def while_loop(
    condition: Callable[[Any], Any], body: Callable[[Any], Any], carry: Any, bound: int | None = None
) -> Any:
    """Repeat `carry = body(carry)` while `condition(carry)` holds, at most `bound` times; returns the last carry.

    Whether the bound has ended it is told by the condition of what is returned. Carry a counter to know how often the
    body was executed.
    """
    if bound is None:
        raise LoopError(
            "while_loop has no bound: one state that never meets its condition would hold up all others. Give the "
            "largest number of iterations that makes sense, such as bound=100."
        )
    count = _positive("while_loop: the bound", bound)
    trace = current() or trace_of(carry)
    if trace is None:
        return _repeat(condition, body, carry, count)
    first = [trace.lift(x) for x in leaves(carry)]
    go = _condition(trace, condition(like(carry, iter(first))))
    around: Trace | None = trace
    while around is not None and around.active is None:
        around = around.parent
    if around is not None:  # a state that has left a loop around this one takes no part here either
        go = go & trace.lift(around.active)
    start = [go, *first]
    inner = Trace(trace)
    with inner.recording():
        active, *held = _inputs(inner, 0, start, lambda x: x.shape)
        inner.active = active
        new = _checked(inner, "while_loop", carry, held, body(like(carry, iter(held))))
        masked = [HANDLERS[np.where](active, n, h) for n, h in zip(new, held, strict=True)]
        further = active & _condition(inner, condition(like(carry, iter(masked))))
    sizes = (sum(x.size for x in start), 0)
    program, captured = _finish(inner, trace, sizes, [[further, *masked], []])
    loop = Loop(program, count, conditional=True)
    parts = trace.builder.loop(loop, [*(i for x in start for i in _numbers(x)), *captured])
    return like(carry, _arrays(trace, parts[1:], first))


# --- on numbers -----------------------------------------------------------------------------------------------------


def _walk(body: Any, carry: Any, stacks: Any, count: int, reverse: bool) -> tuple[Any, Any]:
    held, walked = [np.asarray(x) for x in leaves(carry)], [np.asarray(x) for x in leaves(stacks)]
    rows: list[Any] = [None] * count
    out = None
    for k in reversed(range(count)) if reverse else range(count):
        item = None if stacks is None else like(stacks, iter([x[k] for x in walked]))
        new, out = _pair(body(like(carry, iter(held)), item))
        held = _checked(None, "scan", carry, held, new)
        rows[k] = [] if out is None else leaves(out)
    kept = (np.stack(parts) for parts in zip(*rows, strict=True))
    return like(carry, iter(held)), None if out is None else like(out, kept)


def _repeat(condition: Any, body: Any, carry: Any, count: int) -> Any:
    held = [np.asarray(x) for x in leaves(carry)]
    for _ in range(count):
        if not _one_truth(np.asarray(condition(like(carry, iter(held))))):
            break
        held = _checked(None, "while_loop", carry, held, body(like(carry, iter(held))))
    return like(carry, iter(held))


# --- what a body gets and gives -------------------------------------------------------------------------------------


def _inputs(trace: Trace, operand: int, arrays: Sequence[Array], shape: Callable[[Array], Any]) -> Iterator[Array]:
    """One array of the body for each of some arrays around it; truth values come as numbers and are made such again."""
    start = 0
    for x in arrays:
        size = int(np.prod(shape(x)))
        ids = [trace.builder.emit(("input", operand, start + k)) for k in range(size)]
        yield _array(trace, np.array(ids, np.int64).reshape(shape(x)), x.truths)
        start += size


def _array(trace: Trace, ids: Any, truths: bool) -> Array:
    """Numbers that come out of a body or go into it, as an array of the kind that they stand for."""
    array = Array(trace, ids)
    return array.astype(bool) if truths else array


def _arrays(trace: Trace, parts: list[int], arrays: Sequence[Array]) -> Iterator[Array]:
    start = 0
    for x in arrays:
        ids = np.array(parts[start : start + x.size], np.int64).reshape(x.shape)
        yield _array(trace, ids, x.truths)
        start += x.size


def _numbers(x: Array) -> list[int]:
    """The values of an array; truth values as 1.0 and 0.0."""
    return [x.origin.builder.number(i) for i in x.ids.ravel().tolist()]


def _pair(returned: Any) -> tuple[Any, Any]:
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise LoopError(
            "scan: the body returns two things, what is carried on and what is kept (None if nothing); it returned "
            f"{type(returned).__name__ if not isinstance(returned, tuple) else f'{len(returned)} things'}."
        )
    return returned[0], returned[1]


def _checked(trace: Trace | None, name: str, carry: Any, held: Sequence[Any], new: Any) -> list[Any]:
    """What the body wants to carry on, which must be like what it got."""
    if _structure(new) != _structure(carry):
        raise LoopError(
            f"{name}: the body got {_described(carry)} to carry, and returned {_described(new)}: it has to return what "
            "it got, changed in value alone."
        )
    lifted = [np.asarray(x) if trace is None else trace.lift(x) for x in leaves(new)]
    for k, (before, after) in enumerate(zip(held, lifted, strict=True)):
        if before.shape != after.shape:
            raise LoopError(
                f"{name}: carried array {k} has shape {before.shape} before and {after.shape} after the body: an array "
                "keeps its shape in a loop. Start with one that is large enough."
            )
        if (before.dtype == bool) != (after.dtype == bool):
            raise LoopError(
                f"{name}: carried array {k} holds {_kind(before)} before and {_kind(after)} after the body: start with "
                f"{_kind(after)}, or convert with .astype."
            )
    return lifted


def _kind(x: Any) -> str:
    return "truth values" if x.dtype == bool else "numbers"


def _structure(x: Any) -> Any:
    return tuple(_structure(part) for part in x) if isinstance(x, tuple) else None


def _described(x: Any) -> str:
    return f"a tuple of {len(x)}" if isinstance(x, tuple) else "one array"


def _condition(trace: Trace, returned: Any) -> Array:
    """A condition as a truth value that is false where it compares NaN."""
    lifted = _one_truth(trace.lift(returned))
    g, value = trace.builder, lifted.ids.item()
    for x in sorted(_doubtful(g, value, True)):
        value = g.logical_and(value, g.eq(x, x))
    return Array(trace, np.array(value), True)


def _one_truth(x: Any) -> Any:
    """What a condition returned, if it can be one."""
    if x.shape != () or x.dtype != bool:
        raise LoopError(
            f"while_loop: the condition is one truth value, such as error > tolerance; it returned {_kind(x)} of shape "
            f"{x.shape}. Use np.any or np.all to join several."
        )
    return x


def _doubtful(g: Builder, value: int, sufficient: bool) -> set[int]:
    """Numbers that a condition compares, where a NaN does not make it false by itself.

    `sufficient` if the condition is false whenever `value` is: as a < and a <= are for NaN.
    """
    if value <= 0:
        return set()
    kind, *args = g.nodes[value]
    if kind in ("lt", "le", "eq", "ne"):
        return set() if sufficient and kind != "ne" else {x for x in args if x > 0}
    if kind in ("and", "xor", "not"):
        return {x for a in args for x in _doubtful(g, a, sufficient and kind == "and")}
    return set()


def _length(name: str, stacks: Any, length: int | None) -> int:
    if stacks is None:
        if length is None:
            raise LoopError(f"{name}: there is nothing to walk along: give stacks, or a length.")
        return _positive(f"{name}: the length", length)
    shapes = [np.shape(x) for x in leaves(stacks)]
    lengths = {shape[0] if shape else None for shape in shapes}
    if len(lengths) != 1 or None in lengths or length not in (None, *lengths):
        asked = "" if length is None else f", and length={length}"
        raise LoopError(f"{name}: stacks have one and the same length in their first axis; got shapes {shapes}{asked}.")
    return _positive(f"{name}: the length of the stacks", lengths.pop())


def _positive(what: str, number: Any) -> int:
    try:
        count = operator.index(number)
    except TypeError:
        raise LoopError(
            f"{what} is a whole number that is known when the kernel is compiled, not {number!r}."
        ) from None
    if count < 1:
        raise LoopError(f"{what} is {count}; it must be at least 1.")
    return count


# --- what stays the same in every iteration -------------------------------------------------------------------------


def _finish(
    inner: Trace, trace: Trace, sizes: tuple[int, int], results: Sequence[Sequence[Array]]
) -> tuple[Program, list[int]]:
    """The body as a program, and the values that it captures, with all that depends on those alone taken out of it."""
    flat = tuple(tuple(i for x in arrays for i in _numbers(x)) for arrays in results)
    names = ("carried", "item", "captured")
    inputs = [Operand(n, (s,)) for n, s in zip(names, (*sizes, len(inner.captured)), strict=True)]
    outputs = tuple(Operand(n, (len(values),)) for n, values in zip(("carried", "kept"), flat, strict=True))
    whole = inner.builder.finish(tuple(inputs), outputs, flat)

    outer, g = trace.builder, builder_type.get()()
    around: dict[int, int] = {-k: outer.constant(c) for k, c in enumerate(whole.constants)}
    inside: dict[int, int] = {-k: g.constant(c) for k, c in enumerate(whole.constants)}
    captured: dict[int, int] = {}
    sources = list(inner.captured)

    def entered(value: int) -> int:
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
            if all(a in around for a in args):
                around[value] = remake(outer, node, [around[a] for a in args], whole.loops)
            else:
                inside[value] = remake(g, node, [entered(a) for a in args], whole.loops)
    final = tuple(tuple(entered(v) for v in values) for values in whole.results)
    inputs[CAPTURED] = Operand(names[CAPTURED], (len(captured),))
    program = g.finish(tuple(inputs), outputs, final)
    return program, list(captured)
