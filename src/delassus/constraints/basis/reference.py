"""Time-varying references: functions of time, with their velocities and accelerations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

import delassus.numpy as np
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.differentiation.derivatives import jvp
from delassus.compiler.differentiation.recorded_function import RecordedFunction
from delassus.constraints.basis.function_tracing import trace_function


class MovingPoint(NamedTuple):
    """Position, velocity and acceleration (3,) [m, m/s, m/s²] of a point in the world."""

    position: Any
    velocity: Any
    acceleration: Any


class MovingFrame(NamedTuple):
    """Rotation and origin of a frame in the world; its velocity and spatial acceleration (6,) in its own axes."""

    R: Any
    p: Any
    velocity: Any
    acceleration: Any


@dataclass(frozen=True)
class MovingReference:
    """A traced function of time: its value, and its first and second derivatives."""

    function: RecordedFunction

    @classmethod
    def of(cls, label: str, description: str, function: Any, *shapes: tuple[int, ...]) -> MovingReference:
        """Trace a function of the time t [s] written in NumPy, whose results have these shapes."""
        shapes_text = " and ".join(f"an array of shape {shape}" for shape in shapes)
        should = f"It takes t [s] and gives {shapes_text}, in NumPy."
        return cls(
            trace_function(f"the {description} of {label!r} as a function of time", function, {"t": ()}, shapes, should)
        )

    @property
    def moves(self) -> bool:
        """Whether the results depend on time."""
        return any(value > 0 for result in self.function.program.results for value in result)

    def sample(self, time: float) -> tuple[NDArray[numpy.float64], ...]:
        """The results at a time, as plain arrays."""
        return evaluate(self.function.program, numpy.asarray(time, float))

    def at(self, time: Any) -> tuple[Any, Any, Any]:
        """The results at a time, and their first and second derivatives, each a tuple."""
        one = np.ones(())

        def rate(t: Any) -> Any:
            return jvp(self.function, (t,), (one,))

        (value, first), (_, second) = jvp(rate, (np.asarray(time),), (one,))
        return value, first, second

    def point(self, time: Any) -> MovingPoint:
        """As the motion of a point."""
        (p,), (v,), (a,) = self.at(time)
        return MovingPoint(p, v, a)

    def frame(self, time: Any) -> MovingFrame:
        """As the motion of a frame, for a function that returns R (3, 3) and p (3,)."""
        (R, p), (R_1, p_1), (R_2, p_2) = self.at(time)
        # Rᵀ R' = w×, and its derivative RᵀR'' + R'ᵀR' = w'×: the second part is symmetric and drops out.
        w, w_1 = _turning(R.T @ R_1), _turning(R.T @ R_2)
        v = R.T @ p_1
        return MovingFrame(R, p, np.concatenate([v, w]), np.concatenate([R.T @ p_2 - np.cross(w, v), w_1]))


def _turning(A: Any) -> Any:
    """The vector w of the antisymmetric part w× of a matrix."""
    return 0.5 * np.stack([A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1]])


def is_moving(reference: Any) -> bool:
    """Whether a reference is a function of time, or a `MovingReference`."""
    return isinstance(reference, MovingReference) or (callable(reference) and not isinstance(reference, numpy.ndarray))
