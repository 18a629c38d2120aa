"""Runs a function on traced arrays and returns its graph as a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from delassus.compiler.graph.program import Operand, Program
from delassus.compiler.tracing import operations as _operations  # noqa: F401  (what traced arrays can do)
from delassus.compiler.tracing.array import Array
from delassus.compiler.tracing.shared import SharedArray
from delassus.compiler.tracing.trace import Trace, current
from delassus.errors import DelassusError


class KernelError(DelassusError):
    """A function cannot be made a kernel: what it returns, or how it calls itself, does not fit."""

    code = "bad-kernel"


def refuse_inside(label: str, remedy: str) -> None:
    """Raise if a kernel is being traced: some functions are plain NumPy, and no part of a kernel."""
    if current() is not None:
        raise KernelError(f"{label} is plain NumPy and cannot be part of a kernel: {remedy}.", code="not-traceable")


def record(
    name: str, function: Callable[..., Any], inputs: tuple[Operand, ...], outputs: tuple[Operand, ...]
) -> Program:
    """The program of `function`, called with one traced array per input."""
    trace = Trace()
    with trace.recording():
        arguments = [_argument(trace, k, operand) for k, operand in enumerate(inputs)]
        returned = check_results(name, function(*arguments), outputs, trace)
    number = trace.builder.number
    results = tuple(tuple(number(v) for v in r.ids.ravel().tolist()) for r in returned)
    return trace.builder.finish(inputs, outputs, results)


def _argument(trace: Trace, k: int, operand: Operand) -> Array:
    if operand.shared:
        return SharedArray(trace, k, np.arange(operand.size).reshape(operand.shape))
    ids = [trace.builder.emit(("input", k, i)) for i in range(operand.size)]
    return Array(trace, np.array(ids, np.int64).reshape(operand.shape))


def check_results(name: str, returned: Any, outputs: Sequence[Operand], trace: Trace | None) -> list[Any]:
    """What a kernel's function returned, one array per output of the signature, or an error that says what is off.

    Traced if a trace is given, plain arrays of float64 otherwise.
    """
    if returned is None:
        raise KernelError(
            f"{name} returned nothing; its signature promises {len(outputs)} output(s). Is a `return` missing?",
            code="missing-return",
        )
    parts = list(returned) if isinstance(returned, tuple) else [returned]
    if len(parts) != len(outputs):
        raise KernelError(
            f"{name} returned {len(parts)} value(s); its signature promises {len(outputs)}.", code="missing-return"
        )
    checked = []
    for part, operand in zip(parts, outputs, strict=True):
        if part is None:
            raise KernelError(
                f"{name} returned None as {operand.name}; its signature promises shape {operand.shape}.",
                code="missing-return",
            )
        array = np.asarray(part, float) if trace is None else trace.lift(part)
        if array.shape != operand.shape:
            raise KernelError(
                f"{name} returned shape {array.shape} as {operand.name}; its signature promises {operand.shape}.",
                code="wrong-shape",
            )
        checked.append(array)
    return checked


def inline(
    name: str,
    call: object,
    function: Callable[..., Any],
    arguments: Sequence[Any],
    inputs: Sequence[Operand],
    outputs: Sequence[Operand],
) -> Any:
    """Call a kernel's function inside the current trace, where it becomes part of the caller's program.

    `call` tells kernels apart: one that is reached again while it is being inlined would never end.
    """
    trace = current()
    if trace is None:
        raise KernelError(f"{name} cannot be inlined: nothing is being traced.", code="not-traceable")
    if call in trace.calls:
        raise KernelError(f"{name} calls itself with the same model: the trace would never end.", code="endless-trace")
    # Copies: a function that changes its arguments in place changes nothing of its caller, as when it is compiled.
    lifted = [x if isinstance(x, SharedArray) else x.copy() for x in map(trace.lift, arguments)]
    for array, operand in zip(lifted, inputs, strict=True):
        if array.shape != operand.shape:
            raise ValueError(
                f"{name} got {operand.name} of shape {array.shape} inside another kernel, where it needs exactly "
                f"{operand.shape}: there are no batch axes in a trace."
            )
    trace.calls.append(call)
    try:
        results = check_results(name, function(*lifted), outputs, trace)
    except RecursionError:
        if len(trace.calls) == 1:
            raise
        raise KernelError(
            f"{name} is called {len(trace.calls)} kernels deep, which is more than Python can follow: a kernel that "
            "calls itself with another model has to come to an end, by an `if` on the model.",
            code="endless-trace",
        ) from None
    finally:
        trace.calls.pop()
    return results[0] if len(results) == 1 else tuple(results)
