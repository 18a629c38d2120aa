"""Traces user functions of constraints, and stores them as graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from delassus.compiler.differentiation.recorded_function import RecordedFunction
from delassus.constraints.basis.constraint import ConstraintError


def trace_function(
    label: str, function: Callable[..., Any], inputs: dict[str, tuple[int, ...]], shapes: tuple[Any, ...], should: str
) -> RecordedFunction:
    """Trace a function of arrays with the shapes of `inputs`, whose results must have the shapes that follow.

    Failures raise an error of the constraint, which describes what the function `should` be; the original exception is
    its cause, so that the user's line is in the traceback.
    """
    try:
        return RecordedFunction.of("the function", function, inputs, *shapes)
    except Exception as error:
        said = str(error).rstrip(".") or "no reason given"
        raise ConstraintError(
            f"{label} cannot be traced: {said} ({type(error).__name__}). {should}", code="function-failed"
        ) from error
