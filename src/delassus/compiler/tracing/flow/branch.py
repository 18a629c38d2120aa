"""Branches in kernels: `cond` skips a branch that no state takes.

    y = cond(condition, function, otherwise, *operands)    function(*operands) where the condition holds, else otherwise

`np.where` computes both branches for every state. With `cond`, the function is executed only if the condition holds for
some of the states that are computed together, in the lanes of a vector; for a single state it is a true branch. Each
state gets its own choice in either case. This pays for branches that are rarely needed, or needed by neighboring
states: the code is a block of its own, whose results pass through memory.

Results may be a `NamedTuple`, of one type in both branches, or a plain tuple of the same length in one of them. The
result has the type of the function's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from delassus.common.types import Traced
from delassus.compiler.graph.graph import FALSE, TRUE
from delassus.compiler.graph.program import Loop
from delassus.compiler.tracing.array import Array, Recording
from delassus.compiler.tracing.flow import bodies
from delassus.compiler.tracing.flow.nests import find_difference, labels, leaves, like
from delassus.compiler.tracing.trace import Trace, current, trace_of

_EXAMPLE = "depth > 0.0"


def cond(condition: Traced, function: Callable[..., Any], otherwise: Traced, *operands: Traced) -> Traced:
    """The result of a function where a condition holds, and of another one, or other arrays, where it does not.

    Args:
        condition: A boolean.
        function: A function of the operands; it may also use other arrays of the enclosing scope.
        otherwise: Arrays like the function's result, or a function of the operands that returns such; it is executed
            only if some state needs it.
        operands: Arrays, or nests of tuples of them.

    >>> float(dl.compiler.cond(True, lambda x: 2.0 * x, 0.0, 3.0))
    6.0
    """
    trace = current() or trace_of(condition, operands)
    lift: Callable[[Any], Any] = np.asarray if trace is None else trace.lift
    holds = bodies.one_truth("cond", _EXAMPLE, lift(condition))
    if trace is None or holds.ids.item() in (TRUE, FALSE):
        is_true = bool(holds) if trace is None else holds.ids.item() == TRUE
        result = function(*operands) if is_true else otherwise(*operands) if callable(otherwise) else otherwise
        return like(result, (lift(x) for x in leaves(result)))
    other = _block(trace, ~holds, otherwise, None, operands) if callable(otherwise) else otherwise
    return _block(trace, holds, function, other, operands)


def _block(trace: Recording, holds: Array, function: Callable[..., Any], other: Any, operands: tuple[Any, ...]) -> Any:
    """The results of a function where a condition holds; others, or zeros if there are none, elsewhere."""
    go = bodies.while_active(trace, holds)
    inner = Trace(trace)
    with inner.recording():
        (active,) = bodies.inputs_of(inner, 0, [go], lambda x: x.shape)
        inner.active = active
        returned = function(*operands)
        new = [inner.lift(x) for x in leaves(returned)]
        before = _like(trace, returned, new, other)
        masked = list(bodies.keep_unless(active, new))
        inactive = inner.lift(False)
    start = [go, *before]
    program, captured = bodies.finish_body(
        inner, trace, (sum(x.size for x in start), 0), [[inactive, *masked], []], hoist=False
    )
    loop = Loop(program, 1, conditional=True)
    parts = trace.builder.loop(loop, [*(i for x in start for i in bodies.numbers_of(x)), *captured])
    return like(returned, bodies.arrays_of(trace, parts[1:], before))


def _like(trace: Recording, returned: Any, new: list[Array], other: Any) -> list[Array]:
    """What a state gets that the function is not executed for, in the shapes and kinds of what the function gave."""
    if other is None:
        return [trace.lift(np.zeros(x.shape, bool if x.truths else float)) for x in new]
    difference = find_difference(returned, other)
    if difference is not None:
        path, one, another = difference
        raise bodies.LoopError(
            f"cond: the function returned {one}{f' as `{path}`' if path else ''}, and otherwise it is {another}: "
            "both have to be alike.",
            code="carry-mismatch",
        )
    lifted = [trace.lift(x) for x in leaves(other)]
    for label, a, b in zip(labels(returned), new, lifted, strict=True):
        if a.shape != b.shape or a.truths != b.truths:
            raise bodies.LoopError(
                f"cond: {label} of what the function returned holds {bodies.kind_of(a)} of shape {a.shape}, and "
                f"otherwise {bodies.kind_of(b)} of shape {b.shape}; both branches must return the same.",
                code="carry-mismatch",
            )
    return lifted
