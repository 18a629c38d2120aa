"""Converts the arguments of a function to traced arrays of one trace."""

from typing import Any

from delassus.compiler.tracing.array import Array, Recording
from delassus.compiler.tracing.trace import current, trace_of


def trace_here(*arguments: Any) -> Recording:
    """The trace that the arguments belong to, or else the current one."""
    trace = trace_of(*arguments) or current()
    if trace is None:
        raise TypeError("this function works on traced values, and no kernel is being traced here.")
    return trace


def lift(*arguments: Any) -> list[Array]:
    """Arguments as traced arrays of one trace."""
    trace = trace_here(*arguments)
    return [trace.lift(x) for x in arguments]


def floats(*arguments: Any) -> list[Array]:
    """Arguments as traced arrays of floats: booleans become 1.0 and 0.0."""
    return [x if not x.truths else x.astype(float) for x in lift(*arguments)]


def truths(*arguments: Any) -> list[Array]:
    """Arguments as traced arrays of booleans: a number is true unless it is zero."""
    return [x if x.truths else x.astype(bool) for x in lift(*arguments)]
