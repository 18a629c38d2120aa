"""User functions of time and state for forces and events; they are traced once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from delassus.compiler.differentiation.recorded_function import RecordedFunction
from delassus.errors import BadArgument, short
from delassus.model.description import HasModel


class MotionError(BadArgument):
    """Invalid arguments of a simulation."""


@dataclass(frozen=True)
class Event:
    """A function of time and state whose zeros are recorded.

    Attributes:
        function: g(time, q, v), scalar, in NumPy (`delassus.numpy`).
        name: Name of the event; by default that of the function.
        direction: 1 for zeros where g increases, -1 where it decreases, 0 for both.
        ends: Whether the event ends the motion.

    >>> dl.stepping.Event(lambda time, q, v: q[0], name="upright", direction=1).name
    'upright'
    """

    function: Callable[[Any, Any, Any], Any] | RecordedFunction
    name: str = ""
    direction: int = 0
    ends: bool = True

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise MotionError(
                f"the function of an event is {self.function!r}; it must be a function g(time, q, v).",
                code="wrong-type",
            )
        if not isinstance(self.name, str):
            raise MotionError(
                f"the name of an event is {short(repr(self.name))}; it must be a string.", code="wrong-type"
            )
        if not isinstance(self.direction, (int, float, np.integer)) or self.direction not in (-1, 0, 1):
            raise MotionError(
                f"the direction of an event is {short(repr(self.direction))}; it must be 1 for rising, -1 for falling, "
                "0 for both.",
                code="unknown-option",
            )
        if not self.name:
            object.__setattr__(self, "name", getattr(self.function, "__name__", "event"))

    def on(self, robot: HasModel) -> Event:
        """Trace the function for a robot."""
        if isinstance(self.function, RecordedFunction):
            return self
        function = trace_function(f"the event {self.name!r}", self.function, robot, ())
        return Event(function, self.name, self.direction, self.ends)


def trace_function(
    label: str, function: Callable[[Any, Any, Any], Any], robot: HasModel, shape: tuple[int, ...]
) -> RecordedFunction:
    """Trace a function of time, q and v that returns an array of this shape."""
    inputs: dict[str, tuple[int, ...]] = {"time": (), "q": (robot.nq,), "v": (robot.nv,)}
    try:
        return RecordedFunction.of("the function", function, inputs, shape)
    except Exception as error:
        reason = str(error).rstrip(".") or "no reason given"
        result_text = f"an array of shape {shape}" if shape else "one number"
        raise MotionError(
            f"{label} cannot be traced: {reason} ({type(error).__name__}). It must be a function (time, q, v) that "
            f"returns {result_text}, in NumPy (import delassus.numpy as np).",
            code="function-failed",
        ) from error
