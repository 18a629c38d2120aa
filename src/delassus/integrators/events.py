"""Forces and events as functions of time and state that users write; they are traced once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from delassus.compiler.differentiation.recorded_function import RecordedFunction
from delassus.errors import BadArgument, short
from delassus.model.description import HasModel


class MotionError(BadArgument):
    """A motion cannot be simulated as it is asked for."""


@dataclass(frozen=True)
class Event:
    """Something that happens when a function of time and state goes through zero.

    Attributes:
        function: g(time, q, v), one number, written in NumPy (`delassus.numpy`).
        name: What it is called; by default as the function is.
        direction: 1 if it counts when g rises, -1 when it falls, 0 for both.
        ends: Whether the motion ends there.

    >>> dl.stepping.Event(lambda time, q, v: q[0], name="upright", direction=1).name
    'upright'
    """

    function: Callable[[Any, Any, Any], Any] | RecordedFunction
    name: str = ""
    direction: int = 0
    ends: bool = True

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise MotionError(f"an event needs a function g(time, q, v), not {self.function!r}.", code="wrong-type")
        if not isinstance(self.name, str):
            raise MotionError(
                f"the name of an event is {short(repr(self.name))}; it must be a string.", code="wrong-type"
            )
        if not isinstance(self.direction, (int, float, np.integer)) or self.direction not in (-1, 0, 1):
            raise MotionError(
                f"the direction of an event is {short(repr(self.direction))}; it must be 1 for rising, -1 for "
                "falling, 0 "
                "for both.",
                code="unknown-option",
            )
        if not self.name:
            object.__setattr__(self, "name", getattr(self.function, "__name__", "event"))

    def on(self, robot: HasModel) -> Event:
        """The event with its function traced for a robot."""
        if isinstance(self.function, RecordedFunction):
            return self
        function = trace_function(f"the event {self.name!r}", self.function, robot, ())
        return Event(function, self.name, self.direction, self.ends)


def trace_function(
    what: str, function: Callable[[Any, Any, Any], Any], robot: HasModel, shape: tuple[int, ...]
) -> RecordedFunction:
    """The program of a function of time, q and v that gives an array of this shape."""
    inputs: dict[str, tuple[int, ...]] = {"time": (), "q": (robot.nq,), "v": (robot.nv,)}
    try:
        return RecordedFunction.of("the function", function, inputs, shape)
    except Exception as error:
        said = str(error).rstrip(".") or "no reason given"
        gives = f"an array of shape {shape}" if shape else "one number"
        raise MotionError(
            f"{what} cannot be traced: {said} ({type(error).__name__}). It is a function (time, q, v) that gives "
            f"{gives}, in NumPy (import delassus.numpy as np).",
            code="function-failed",
        ) from error
