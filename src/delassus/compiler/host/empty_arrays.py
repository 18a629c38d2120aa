"""Kernels for models with empty arrays: compiles a ufunc of the other arrays, and returns empty outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from delassus.compiler.backends.target import Target
from delassus.compiler.host import threads
from delassus.compiler.host.build import Compiled, Recipe, build
from delassus.compiler.host.definition import Case
from delassus.compiler.host.inputs import InputError
from delassus.compiler.tracing.record import record


def has_empty(case: Case) -> bool:
    """Whether an array of a case has no elements, which ufuncs do not support."""
    return not all(operand.size for side in case.operands for operand in side)


def run(
    case: Case, arrays: tuple[Any, ...], target: Target, find: Callable[[Callable[[], Compiled]], Compiled]
) -> tuple[Any, ...]:
    """The outputs of a call, including those without elements; `find` returns the compiled ufunc of the others."""
    name, (inputs, outputs) = case.definition.name, case.operands
    shapes = [np.shape(x) for x in arrays]
    for shape, operand in zip(shapes, inputs, strict=True):
        if shape[len(shape) - len(operand.shape) :] != operand.shape:
            raise InputError(f"{name}: {operand.name} has shape {shape}, its core must be {operand.shape}.")
    batch = np.broadcast_shapes(*[s[: len(s) - len(o.shape)] for s, o in zip(shapes, inputs, strict=True)])
    nonempty_inputs, nonempty_outputs = (tuple(o for o in side if o.size) for side in (inputs, outputs))

    def call_without_empty(*nonempty_arrays: Any) -> Any:
        remaining = iter(nonempty_arrays)
        results = case(*[next(remaining) if o.size else np.zeros(o.shape) for o in inputs])
        parts = results if isinstance(results, tuple) else (results,)
        return tuple(part for part, o in zip(parts, outputs, strict=True) if o.size)

    def make() -> Compiled:
        return build(Recipe(name, case.definition.doc, nonempty_inputs, nonempty_outputs, trace, None, target))

    computed: Iterator[Any] = iter(())
    trace = partial(record, name, call_without_empty, nonempty_inputs, nonempty_outputs)
    if not nonempty_outputs:  # nothing to compile; the trace raises the errors of the function
        trace()
    else:
        nonempty = tuple(x for x, o in zip(arrays, inputs, strict=True) if o.size)
        results = threads.run(find(make), nonempty, None)
        computed = iter(results if len(nonempty_outputs) > 1 else (results,))
    return tuple(
        _with_batch(next(computed), batch + o.shape) if o.size else np.zeros(batch + o.shape, target.precision.dtype)
        for o in outputs
    )


def _with_batch(x: Any, shape: tuple[int, ...]) -> Any:
    """Broadcast an output to batch axes that only arrays without elements have."""
    return x if np.shape(x) == shape else np.array(np.broadcast_to(x, shape))
