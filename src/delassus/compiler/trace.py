"""Recording: the trace that a function runs in while its graph is being made.

A trace is open while the function runs. A traced value that is used afterwards, or in another trace, raises
`LeakedTracer`, since it names a number that no longer exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from delassus.compiler.array import Array, contains_traced
from delassus.compiler.graph import Builder
from delassus.errors import DelassusError

_current: ContextVar[Trace | None] = ContextVar("delassus_trace", default=None)

builder_type: ContextVar[type[Builder]] = ContextVar("delassus_builder", default=Builder)
"""What new traces make their graphs with."""


class LeakedTracer(DelassusError):
    """A traced value was used outside the function call that it belongs to."""


def current() -> Trace | None:
    """The trace that is being recorded in this thread or task, if any."""
    return _current.get()


class Trace:
    """One recording: the graph so far, and the kernels that are being inlined into it."""

    def __init__(self) -> None:
        self.builder = builder_type.get()()
        self.open = True
        self.calls: list[object] = []

    @contextmanager
    def recording(self) -> Iterator[Trace]:
        """Make this the current trace; it closes at the end, whatever happens."""
        token = _current.set(self)
        try:
            yield self
        finally:
            _current.reset(token)
            self.open = False

    def lift(self, x: Any) -> Array:
        """Anything array-like as a traced array: numbers become constants, nested lists are stacked."""
        if isinstance(x, Array):
            if x.origin is not self or not self.open:
                raise LeakedTracer(
                    f"a traced value of shape {x.shape} is used outside the call that traced it. It stands for "
                    "an expression, not for numbers: return it from the kernel instead of keeping it."
                )
            return x
        if isinstance(x, (float, int)):
            return Array(self, np.array(self.builder.constant(x)), isinstance(x, bool))
        if isinstance(x, (list, tuple)) and contains_traced(x):
            parts = [self.lift(e) for e in x]
            return Array(self, np.stack([part.ids for part in parts]), any(part.truths for part in parts))
        numbers = np.asarray(x)
        if numbers.dtype.kind not in "biuf":
            raise TypeError(
                f"cannot mix traced values with an array of dtype {numbers.dtype}: only real numbers and "
                "truth values can enter a kernel."
            )
        ids = [self.builder.constant(number) for number in numbers.ravel().tolist()]
        return Array(self, np.array(ids, np.int64).reshape(numbers.shape), numbers.dtype.kind == "b")

    def map(self, make: Callable[..., int], *arrays: Array, truths: bool = False) -> Array:
        """Apply a maker of values element by element, with broadcasting; `truths` if it makes truth values."""
        ids = [a.ids for a in arrays]
        shape = ids[0].shape
        if any(i.shape != shape for i in ids):
            ids = [np.asarray(i) for i in np.broadcast_arrays(*ids)]
            shape = ids[0].shape
        if not shape:
            return Array(self, np.array(make(*[i.item() for i in ids])), truths)
        made = list(map(make, *[i.ravel().tolist() for i in ids]))
        return Array(self, np.array(made, np.int64).reshape(shape), truths)


def trace_of(*arguments: Any) -> Trace | None:
    """The trace of the first traced value among some arguments, looking into lists and tuples."""
    for x in arguments:
        if isinstance(x, Array):
            return x.origin
        if isinstance(x, (list, tuple)):
            found = trace_of(*x)
            if found is not None:
                return found
    return None
