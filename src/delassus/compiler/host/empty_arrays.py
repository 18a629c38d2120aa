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
    """Whether some arrays have no elements, so that there is no ufunc."""
    return not all(operand.size for side in case.operands for operand in side)


def run(
    case: Case, arrays: tuple[Any, ...], target: Target, find: Callable[[Callable[[], Compiled]], Compiled]
) -> tuple[Any, ...]:
    """The outputs of a call, those without elements among them; `find` finds the ufunc, or has it made."""
    name, (inputs, outputs) = case.definition.name, case.operands
    shapes = [np.shape(x) for x in arrays]
    for shape, operand in zip(shapes, inputs, strict=True):
        if shape[len(shape) - len(operand.shape) :] != operand.shape:
            raise InputError(f"{name}: {operand.name} has shape {shape}, its core must be {operand.shape}.")
    batch = np.broadcast_shapes(*[s[: len(s) - len(o.shape)] for s, o in zip(shapes, inputs, strict=True)])
    some_in, some_out = (tuple(o for o in side if o.size) for side in (inputs, outputs))

    def call_without_empty(*given: Any) -> Any:
        remaining = iter(given)
        results = case(*[next(remaining) if o.size else np.zeros(o.shape) for o in inputs])
        returned = results if isinstance(results, tuple) else (results,)
        return tuple(r for r, o in zip(returned, outputs, strict=True) if o.size)

    def make() -> Compiled:
        return build(Recipe(name, case.definition.doc, some_in, some_out, trace, None, target))

    found: Iterator[Any] = iter(())
    trace = partial(record, name, call_without_empty, some_in, some_out)
    if not some_out:  # nothing to compile, but what the function refuses is refused all the same
        trace()
    else:
        nonempty = tuple(x for x, o in zip(arrays, inputs, strict=True) if o.size)
        results = threads.run(find(make), nonempty, None)
        found = iter(results if len(some_out) > 1 else (results,))
    return tuple(
        _with_batch(next(found), batch + o.shape) if o.size else np.zeros(batch + o.shape, target.precision.dtype)
        for o in outputs
    )


def _with_batch(x: Any, shape: tuple[int, ...]) -> Any:
    """An output with batch axes that come from arrays without elements alone."""
    return x if np.shape(x) == shape else np.array(np.broadcast_to(x, shape))
