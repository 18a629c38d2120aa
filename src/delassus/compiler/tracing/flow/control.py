"""Loops in kernels: `scan`, `map` and `while_loop`.

    carry, kept = scan(body, carry, stacks)            carry, out = body(carry, item), once for each item
    outs = map(body, stacks)                           out = body(item), once for each item
    carry = while_loop(condition, body, carry, bound)  carry = body(carry), while condition(carry), at most bound times

A plain `for` in a kernel is unrolled: right for the recursion over a tree, whose operations all differ, but too much
code for dense algebra and iterations. These functions trace their body once and compile it to a loop. Outside a kernel,
on numbers, they are ordinary loops.

Carries, items and results are arrays, numbers, or nested tuples of these. Stacks are arrays that are iterated along
their first axis; results of the body are stacked in the same way. The body may use any array of the enclosing scope. It
must return its carry with the shapes and types (floats or booleans) that it received.

Tuples may be named: if the carry is a `NamedTuple`, condition and body receive one of that type, errors name its
fields, and so is the result. The body may return a plain tuple of the same length; a named tuple of another type raises
an error.

States that are computed together in the lanes of a vector may need different numbers of iterations of a `while_loop`.
The loop continues until all of them have finished, and finished states keep their values: the result of a state does
not depend on its neighbors. A state whose condition compares a NaN leaves the loop at once.

Cost: a few instructions for each carried value and item in each iteration, in addition to the body.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from delassus.common.types import Traced
from delassus.compiler.graph.graph import Builder
from delassus.compiler.graph.program import Loop
from delassus.compiler.tracing.array import Array, Recording
from delassus.compiler.tracing.flow.bodies import (
    LoopError,
    array_of,
    arrays_of,
    finish_body,
    inputs_of,
    keep_unless,
    kind_of,
    numbers_of,
    one_truth,
    while_active,
)
from delassus.compiler.tracing.flow.nests import find_difference, labels, leaves, like
from delassus.compiler.tracing.trace import Trace, current, trace_of

_EXAMPLE = "error > tolerance"

UNBOUNDED = 1_000_000
"""The bound of a `while_loop` whose condition counts to a number that is known at run time."""


def scan(
    body: Callable[[Any, Any], tuple[Any, Any]],
    carry: Traced,
    stacks: Traced = None,
    *,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Iterate over stacks with a carry: `carry, out = body(carry, item)`; returns the last carry and all outs.

    Args:
        body: A function of the carry and an item (None if there are no stacks).
        carry: Initial carry.
        stacks: Arrays with the same length of the first axis.
        length: Number of iterations, if there are no stacks.
        reverse: Whether to iterate backward; outs stay next to their items.

    >>> total, _ = dl.compiler.scan(lambda carry, x: (carry + x, None), 0.0, np.arange(4.0))
    >>> float(total)
    6.0
    """
    count = _length("scan", stacks, length)
    trace = current() or trace_of(carry, stacks)
    if trace is None:
        return _walk(body, carry, stacks, count, reverse)
    first = [trace.lift(x) for x in leaves(carry)]
    walked = [] if stacks is None else [trace.lift(x) for x in leaves(stacks)]
    inner = Trace(trace)
    with inner.recording():
        carries = list(inputs_of(inner, 0, first, lambda x: x.shape))
        item = None if stacks is None else like(stacks, inputs_of(inner, 1, walked, lambda x: x.shape[1:]))
        new, out = _pair(body(like(carry, iter(carries)), item))
        carried = _check_carry(inner, "scan", carry, carries, new)
        outs = [] if out is None else [inner.lift(x) for x in leaves(out)]
    items = [i for k in range(count) for x in walked for i in numbers_of(x[k])]
    sizes = (sum(x.size for x in first), sum(x.size // count for x in walked))
    program, captured = finish_body(inner, trace, sizes, [carried, outs])
    parts = trace.builder.loop(
        Loop(program, count, reverse), [*(i for x in first for i in numbers_of(x)), *items, *captured]
    )
    return _loop_results(trace, parts, first, carry, outs, out, count, 0)


def _loop_results(
    trace: Recording,
    parts: list[int],
    first: list[Array],
    carry: Any,
    outs: list[Array],
    out: Any,
    count: int,
    skipped: int,
) -> tuple[Any, Any]:
    """What a loop carries in the end, without some that it counts with, and what it keeps."""
    size = sum(x.size for x in first)
    begin = sum(x.size for x in first[:skipped])
    end = like(carry, arrays_of(trace, parts[begin:size], first[skipped:]))
    table = np.array(parts[size:], np.int64).reshape(count, -1)
    offsets = np.cumsum([x.size for x in outs]).tolist()
    outputs = (
        array_of(trace, table[:, e - x.size : e].reshape(count, *x.shape), x.truths)
        for e, x in zip(offsets, outs, strict=True)
    )
    return end, None if out is None else like(out, outputs)


def map(body: Callable[..., Any], *stacks: Traced) -> Traced:
    """The results of a function of one item of each stack, stacked like those of a list comprehension.

    >>> dl.compiler.map(lambda x: 2.0 * x, np.arange(3.0))
    array([0., 2., 4.])
    """
    return scan(lambda _, item: ((), body(*item)), (), stacks)[1]


def scan_first(
    count: Any, body: Callable[[Any, Any], tuple[Any, Any]], carry: Traced, stacks: Traced = None, *, length: int = 0
) -> tuple[Any, Any]:
    """Like `scan`, over the first `count` items only, a number () that is known at run time.

    States that are computed together continue until the last of them has finished: for items beyond its count, the body
    of a state must not change its carry. Outs of these items are undefined and must not be read.
    """
    most = _length("scan_first", stacks, length or None)
    trace = current() or trace_of(count, carry, stacks)
    if trace is None:
        return _walk(body, carry, stacks, most, False, int(np.clip(count, 0, most)))
    count = trace.lift(count)
    first = [while_active(trace, count > 0.0), trace.lift(0.0), *(trace.lift(x) for x in leaves(carry))]
    walked = [] if stacks is None else [trace.lift(x) for x in leaves(stacks)]
    inner = Trace(trace)
    with inner.recording():
        _, counter, *carries = inputs_of(inner, 0, first, lambda x: x.shape)
        item = None if stacks is None else like(stacks, inputs_of(inner, 1, walked, lambda x: x.shape[1:]))
        new, out = _pair(body(like(carry, iter(carries)), item))
        carried = _check_carry(inner, "scan_first", carry, carries, new)
        outs = [] if out is None else [inner.lift(x) for x in leaves(out)]
        further = [(counter + 1.0) < count, counter + 1.0]
    items = [i for k in range(most) for x in walked for i in numbers_of(x[k])]
    sizes = (sum(x.size for x in first), sum(x.size // most for x in walked))
    program, captured = finish_body(inner, trace, sizes, [[*further, *carried], outs])
    values = [*(i for x in first for i in numbers_of(x)), *items, *captured]
    parts = trace.builder.loop(Loop(program, most, conditional=True), values)
    return _loop_results(trace, parts, first, carry, outs, out, most, 2)


def while_loop(
    condition: Callable[[Any], Any],
    body: Callable[[Any], Any],
    carry: Traced,
    bound: int | None = None,
    *,
    settles: bool = False,
) -> Traced:
    """Repeat `carry = body(carry)` while `condition(carry)` holds, at most `bound` times; returns the last carry.

    If `settles` is true, the body leaves the carry unchanged, bit for bit, once the condition does not hold: then no
    selection between old and new values is needed, which saves a pass over all of them.

    To know whether the bound ended the loop, evaluate the condition on the result. Carry a counter for the number of
    iterations.

    >>> float(dl.compiler.while_loop(lambda x: x < 10.0, lambda x: 2.0 * x, 1.0, bound=10))
    16.0
    """
    if bound is None:
        raise LoopError(
            "while_loop has no bound: one state that never meets its condition would stop all others. Pass the "
            "largest number of iterations that makes sense, such as bound=100.",
            code="missing-argument",
        )
    count = _positive("while_loop: the bound", bound)
    trace = current() or trace_of(carry)
    if trace is None:
        return _repeat(condition, body, carry, count)
    first = [trace.lift(x) for x in leaves(carry)]
    go = _condition(trace, condition(like(carry, iter(first))))
    start = [while_active(trace, go), *first]
    inner = Trace(trace)
    with inner.recording():
        active, *carries = inputs_of(inner, 0, start, lambda x: x.shape)
        inner.active = active
        new = _check_carry(inner, "while_loop", carry, carries, body(like(carry, iter(carries))))
        masked = new if settles else list(keep_unless(active, new))
        arrays = (x if settles else array_of(inner, x.ids, n.truths) for x, n in zip(masked, new, strict=True))
        further = active & _condition(inner, condition(like(carry, arrays)))
    sizes = (sum(x.size for x in start), 0)
    program, captured = finish_body(inner, trace, sizes, [[further, *masked], []])
    loop = Loop(program, count, conditional=True)
    parts = trace.builder.loop(loop, [*(i for x in start for i in numbers_of(x)), *captured])
    return like(carry, arrays_of(trace, parts[1:], first))


# --- on numbers -----------------------------------------------------------------------------------------------------


def _walk(body: Any, carry: Any, stacks: Any, count: int, reverse: bool, limit: int | None = None) -> tuple[Any, Any]:
    carries, walked = [np.asarray(x) for x in leaves(carry)], [np.asarray(x) for x in leaves(stacks)]
    rows: list[Any] = [None] * count
    out = None
    for k in reversed(range(count)) if reverse else range(count if limit is None else max(limit, 1)):
        item = None if stacks is None else like(stacks, iter([x[k] for x in walked]))
        new, out = _pair(body(like(carry, iter(carries)), item))
        carries = _check_carry(None, "scan", carry, carries, new)
        rows[k] = [] if out is None else leaves(out)
    if limit is not None and out is not None:
        rows[limit:] = [[np.zeros_like(x) for x in rows[0]]] * (count - limit)
    outputs = (np.stack(parts) for parts in zip(*rows, strict=True))
    return like(carry, iter(carries)), None if out is None else like(out, outputs)


def _repeat(condition: Any, body: Any, carry: Any, count: int) -> Any:
    carries = [np.asarray(x) for x in leaves(carry)]
    for _ in range(count):
        if not one_truth("while_loop", _EXAMPLE, np.asarray(condition(like(carry, iter(carries))))):
            break
        carries = _check_carry(None, "while_loop", carry, carries, body(like(carry, iter(carries))))
    return like(carry, iter(carries))


# --- what a body gets and gives -------------------------------------------------------------------------------------


def _pair(returned: Any) -> tuple[Any, Any]:
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise LoopError(
            "scan: the body must return a pair, the carry and an output (or None); it returned "
            f"{type(returned).__name__ if not isinstance(returned, tuple) else f'{len(returned)} things'}.",
            code="bad-loop",
        )
    return returned[0], returned[1]


def _check_carry(trace: Recording | None, name: str, carry: Any, carries: Sequence[Any], new: Any) -> list[Any]:
    """What the body wants to carry on, which must be like what it got."""
    difference = find_difference(carry, new)
    if difference is not None:
        path, one, other = difference
        raise LoopError(
            f"{name}: the body got {one} to carry{f' as `{path}`' if path else ''}, and returned {other}; it must "
            "return the same structure, with other values.",
            code="carry-mismatch",
        )
    lifted = [np.asarray(x) if trace is None else trace.lift(x) for x in leaves(new)]
    for label, before, after in zip(labels(carry), carries, lifted, strict=True):
        if before.shape != after.shape:
            raise LoopError(
                f"{name}: carried {label} has shape {before.shape} before and {after.shape} after the body: an array "
                "keeps its shape in a loop. Start with one that is large enough.",
                code="carry-mismatch",
            )
        if (before.dtype == bool) != (after.dtype == bool):
            raise LoopError(
                f"{name}: carried {label} holds {kind_of(before)} before and {kind_of(after)} after the body: start "
                f"with {kind_of(after)}, or convert with .astype.",
                code="carry-mismatch",
            )
    return lifted


def _condition(trace: Recording, returned: Any) -> Array:
    """A condition as a boolean that is false where it compares NaN."""
    lifted = one_truth("while_loop", _EXAMPLE, trace.lift(returned))
    g, value = trace.builder, lifted.ids.item()
    for x in sorted(_doubtful(g, value, True) - trace.flags):
        value = g.logical_and(value, g.eq(x, x))
    return Array(trace, np.array(value), True)


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
            raise LoopError(
                f"{name}: there is nothing to iterate over; pass stacks, or a length.", code="missing-argument"
            )
        return _positive(f"{name}: the length", length)
    shapes = [np.shape(x) for x in leaves(stacks)]
    lengths = {shape[0] if shape else None for shape in shapes}
    if len(lengths) != 1 or None in lengths or length not in (None, *lengths):
        length_text = "" if length is None else f", and length={length}"
        raise LoopError(
            f"{name}: all stacks must have the same length of the first axis; got shapes {shapes}{length_text}.",
            code="wrong-shape",
        )
    return _positive(f"{name}: the length of the stacks", lengths.pop())


def _positive(label: str, number: Any) -> int:
    try:
        count = operator.index(number)
    except TypeError:
        raise LoopError(
            f"{label} is {number!r}; it must be an integer known at compile time.",
            code="not-a-whole-number",
        ) from None
    if count < 1:
        raise LoopError(f"{label} is {count}; it must be at least 1.", code="out-of-range")
    return count
