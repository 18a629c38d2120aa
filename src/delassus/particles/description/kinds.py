"""Types of elements: functions of a few points, written in NumPy and differentiated by the compiler.

An element is either an *energy*, a scalar [J] whose gradient is a force, or a *deformation*, rows g that are zero at
rest: rigid without a compliance, or elastic with the energy ½ g²/C for a compliance C. Both take a few lines:

    @dl.particles.deformation(points=2, numbers=("length",))
    def rod(x, length):
        return np.array([np.sqrt((x[1] - x[0]) @ (x[1] - x[0])) - length])

`x` (points, 3) [m]; the parameters of an element follow by name. The function is traced once: two types that compute
the same share their compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.compiler.differentiation.derivatives import jacobian
from delassus.compiler.differentiation.recorded_function import RecordedFunction
from delassus.compiler.graph.program import Program
from delassus.errors import BadArgument

MOST_POINTS = 8
"""More points would need blocks larger than 24 × 24 for each element."""


class ElementError(BadArgument):
    """Invalid element: its function, its points, or its parameters."""


@dataclass(frozen=True)
class ElementKind:
    """A type of elements.

    Attributes:
        name: Name of the function.
        function: Maps points (points, 3) and parameters (p,) to an energy () or a deformation (rows,).
        points: Number of points of an element.
        rows: Number of rows of its deformation; 0 for an energy.
        numbers: Names of the parameters of each element.

    >>> dl.particles.stretch.points, dl.particles.stretch.rows, dl.particles.stretch.numbers
    (2, 1, ('length',))
    """

    name: str
    function: RecordedFunction
    points: int
    rows: int
    numbers: tuple[str, ...] = ()

    @property
    def k3(self) -> int:
        """The number of coordinates of an element."""
        return 3 * self.points

    @property
    def p(self) -> int:
        """Length of an element's parameter array; one, unused, if it has none."""
        return max(1, len(self.numbers))

    @property
    def m(self) -> int:
        """Length of an element's array of rows; one, unused, for energies."""
        return max(1, self.rows)

    @cached_property
    def _slopes(self) -> Program:
        """The derivatives (rows, points, 3) of a deformation."""
        inputs = {"x": (self.points, 3), "p": (self.p,)}
        shape = (self.rows, self.points, 3)
        return RecordedFunction.of(
            "rows", lambda x, p: jacobian(lambda y: self.function(y, p)[0])(x), inputs, shape
        ).program

    @property
    def steady(self) -> bool:
        """Whether the derivatives of a deformation are constant."""
        return not self._slopes.depends_on(0, output=0)

    @property
    def dependency_pattern(self) -> NDArray[np.bool_]:
        """(rows, points, 3) the coordinates on which the rows of a deformation depend."""
        program = self._slopes
        nonzero = [value > 0 or program.constants[-value] != 0.0 for value in program.results[0]]
        return np.array(nonzero).reshape(self.rows, self.points, 3)


def energy(*, points: int, numbers: Sequence[str] = ()) -> Callable[[Callable[..., Any]], ElementKind]:
    """Decorate a function of points (points, 3) [m] and named parameters that returns an energy [J].

    >>> @dl.particles.energy(points=2, numbers=("stiffness",))
    ... def elastic(x, stiffness):
    ...     return 0.5 * stiffness * ((x[1] - x[0]) @ (x[1] - x[0]))
    >>> elastic.points
    2
    """
    return lambda function: _kind(function, points, 0, numbers)


def deformation(*, points: int, rows: int = 1, numbers: Sequence[str] = ()) -> Callable[..., ElementKind]:
    """Decorate a function of points (points, 3) [m] and named parameters that returns rows (rows,), zero at rest.

    >>> @dl.particles.deformation(points=2, numbers=("length",))
    ... def rod(x, length):
    ...     return dl.numpy.array([dl.numpy.sqrt((x[1] - x[0]) @ (x[1] - x[0])) - length])
    >>> rod.rows
    1
    """
    if not isinstance(rows, int) or rows < 1:
        raise ElementError(
            f"rows is {rows!r}; a deformation must have at least one row; use @energy for an energy.",
            code="out-of-range",
        )
    return lambda function: _kind(function, points, rows, numbers)


def _kind(function: Callable[..., Any], points: int, rows: int, numbers: Sequence[str]) -> ElementKind:
    name = getattr(function, "__name__", "element")
    if not isinstance(points, int) or not 1 <= points <= MOST_POINTS:
        raise ElementError(
            f"{name} has points={points!r}; an element has 1 to {MOST_POINTS} points.", code="out-of-range"
        )
    names = (numbers,) if isinstance(numbers, str) else tuple(numbers)

    def call_element(x: Any, p: Any) -> Any:
        return function(x, **{key: p[k] for k, key in enumerate(names)})

    inputs = {"x": (points, 3), "p": (max(1, len(names)),)}
    recorded = RecordedFunction.of(name, call_element, inputs, (rows,) if rows else ())
    return ElementKind(name, recorded, points, rows, names)
