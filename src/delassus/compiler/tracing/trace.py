"""The trace: the context in which a function is recorded.

A trace is open while the function runs. A traced value that is used afterwards, or in another trace, raises
`LeakedTracer`, since it names a number that no longer exists.

The body of a loop is recorded in a trace of its own, inside the one that the loop belongs to, which is suspended. The
body may use values from around it: they are captured and become inputs of the body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import numpy as np

from delassus.compiler.graph.graph import ZERO, Builder
from delassus.compiler.graph.precision import DOUBLE, Precision
from delassus.compiler.tracing.array import Array, Recording, contains_traced
from delassus.errors import DelassusError

CAPTURED: Final = 2
"""The input of a loop's body that holds the captured values; carried values and items are 0 and 1."""

_current: ContextVar[Trace | None] = ContextVar("delassus_trace", default=None)

builder_type: ContextVar[type[Builder]] = ContextVar("delassus_builder", default=Builder)
"""What new traces make their graphs with."""


class LeakedTracer(DelassusError):
    """A traced value was used outside the function call that it belongs to."""

    code = "leaked-tracer"


_precision: ContextVar[Precision] = ContextVar("delassus_precision", default=DOUBLE)


def current() -> Trace | None:
    """The trace that is being recorded in this thread or task, if any."""
    return _current.get()


@contextmanager
def suspend_trace() -> Iterator[None]:
    """Compute with plain numbers for a while, in the middle of a trace."""
    token = _current.set(None)
    try:
        yield
    finally:
        _current.reset(token)


def computing_in() -> Precision:
    """The precision that a function is traced for, float64 outside of a kernel: for defaults that depend on it."""
    return _precision.get()


@contextmanager
def tracing_for(precision: Precision) -> Iterator[None]:
    """Trace for a precision."""
    token = _precision.set(precision)
    try:
        yield
    finally:
        _precision.reset(token)


class Trace:
    """One recording: the graph so far, and the kernels that are being inlined into it.

    In the body of a loop, `captured` holds the values of the parent that the body uses, with what they are called in
    here, and `active` tells whether a state takes part, if the loop may end early. `flags` are values that stand for
    booleans in memory: 1.0 or 0.0, and never NaN.
    """

    def __init__(self, parent: Recording | None = None) -> None:
        self.builder: Builder = builder_type.get()()
        self.open = True
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.calls: list[object] = [] if parent is None else parent.calls
        self.suspended = False
        self.captured: dict[int, int] = {}
        self.flags: set[int] = set()
        self.active: Array | None = None

    @contextmanager
    def recording(self) -> Iterator[Trace]:
        """Make this the current trace; it closes at the end, whatever happens."""
        token = _current.set(self)
        if self.parent is not None:
            self.parent.suspended = True
        try:
            yield self
        finally:
            _current.reset(token)
            self.open = False
            if self.parent is not None:
                self.parent.suspended = False

    def lift(self, x: Any) -> Array:
        """Anything array-like as a traced array: numbers become constants, nested lists are stacked."""
        if isinstance(x, Array):
            if x.origin is self and self.open:
                return x
            if self.parent is not None and self.open and self._is_around(x.origin):
                return self.parent.lift(x).enter(self)
            if _is_inside(x.origin, self):
                raise LeakedTracer(
                    f"a traced value of shape {x.shape} leaves the body of a loop without being returned: carry it, or "
                    "return it to be kept."
                )
            raise LeakedTracer(
                f"a traced value of shape {x.shape} is used outside the call that traced it. It stands for "
                "an expression, not for numbers: return it from the kernel instead of keeping it."
            )
        if isinstance(x, (float, int)):
            return Array(self, np.array(self.builder.constant(x)), isinstance(x, bool))
        if isinstance(x, (list, tuple)) and contains_traced(x):
            parts = [self.lift(e) for e in x]
            return Array(self, np.stack([part.ids for part in parts]), any(part.truths for part in parts))
        values = np.asarray(x)
        if values.dtype.kind not in "biuf":
            raise TypeError(
                f"cannot mix traced values with an array of dtype {values.dtype}: only real numbers and "
                "booleans can enter a kernel."
            )
        ids = [self.builder.constant(number) for number in values.ravel().tolist()]
        return Array(self, np.array(ids, np.int64).reshape(values.shape), values.dtype.kind == "b")

    def check_changeable(self) -> None:
        """Raise if an array of this trace must not change now, because the body of a loop is being recorded."""
        if self.suspended:
            raise LeakedTracer(
                "an array of the enclosing scope is changed in the body of a loop, which is traced once for all its "
                "executions: carry the array, or change a copy."
            )

    def _is_around(self, other: Recording) -> bool:
        return other.open and _is_inside(self, other)

    def enter(self, value: int) -> int:
        """A value of the parent, as one of this trace."""
        outer, inner = self.parent.builder if self.parent else self.builder, self.builder
        if value <= 0:
            return inner.constant(outer.constants[-value])
        if outer.is_logical(value):  # what enters a body is a float
            number = self.enter(outer.number(value))
            self.flags.add(number)
            return inner.ne(number, ZERO)
        if value not in self.captured:
            self.captured[value] = inner.emit(("input", CAPTURED, len(self.captured)))
        return self.captured[value]

    def map(self, make: Callable[..., int], *arrays: Array, truths: bool = False) -> Array:
        """Apply a maker of values element by element, with broadcasting; `truths` if it makes booleans."""
        ids = [a.ids for a in arrays]
        shape = ids[0].shape
        if any(i.shape != shape for i in ids):
            ids = [np.asarray(i) for i in np.broadcast_arrays(*ids)]
            shape = ids[0].shape
        if not shape:
            return Array(self, np.array(make(*[i.item() for i in ids])), truths)
        values = list(map(make, *[i.ravel().tolist() for i in ids]))
        return Array(self, np.array(values, np.int64).reshape(shape), truths)


def _is_inside(inner: Recording | None, outer: Recording) -> bool:
    """Whether a trace records (part of) the body of a loop of another one."""
    while inner is not None and inner.depth > outer.depth:
        inner = inner.parent
        if inner is outer:
            return True
    return False


def trace_of(*arguments: Any) -> Recording | None:
    """The innermost trace that traced values among some arguments belong to, looking into lists and tuples.

    While the body of a loop is being recorded, that is the trace of the body, even if it uses values from around alone.
    """
    trace: Recording | None = None
    for x in arguments:
        other = x.origin if isinstance(x, Array) else trace_of(*x) if isinstance(x, (list, tuple)) else None
        if other is not None and (trace is None or other.depth > trace.depth):
            trace = other
    inner = _current.get()
    return inner if trace is not None and _is_inside(inner, trace) else trace
