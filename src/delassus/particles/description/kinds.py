"""Types of elements: functions of a few points, written in NumPy and differentiated by the compiler.

An element is either an *energy*, a number [J] whose gradient is a force, or a *deformation*, rows g that are zero at
rest: rigid by themselves, elastic with the energy ½ g²/C if they are given a compliance C. Both are ten lines:

    @dl.particles.deformation(points=2, numbers=("length",))
    def rod(x, length):
        return np.array([np.sqrt((x[1] - x[0]) @ (x[1] - x[0])) - length])

`x` (points, 3) [m]; the numbers of an element follow by name. What a function computes is recorded once: two kinds that
compute the same share their compiled code.
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
"""More points would make blocks of more than 24 × 24 numbers for each element."""


class ElementError(BadArgument):
    """An element that cannot be: its function, its points, its numbers."""


@dataclass(frozen=True)
class ElementKind:
    """A type of elements.

    Attributes:
        name: That of the function.
        function: What it computes: of points (points, 3) and numbers (p,), an energy () or a deformation (rows,).
        points: How many points an element has.
        rows: How many rows its deformation has; 0 for an energy.
        numbers: The names of the numbers that each element has.
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
        """The length of an element's array of numbers: one, unused, where it has none."""
        return max(1, len(self.numbers))

    @property
    def m(self) -> int:
        """The length of an element's array of rows: one, unused, for energies."""
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
        """Whether the rows of a deformation are the same wherever its points are."""
        return not self._slopes.depends_on(0, output=0)

    @property
    def dependency_pattern(self) -> NDArray[np.bool_]:
        """(rows, points, 3) which coordinates the rows of a deformation depend on."""
        program = self._slopes
        found = [value > 0 or program.constants[-value] != 0.0 for value in program.results[0]]
        return np.array(found).reshape(self.rows, self.points, 3)


def energy(*, points: int, numbers: Sequence[str] = ()) -> Callable[[Callable[..., Any]], ElementKind]:
    """Decorate a function of points (points, 3) [m] and named numbers that gives an energy [J]."""
    return lambda function: _kind(function, points, 0, numbers)


def deformation(*, points: int, rows: int = 1, numbers: Sequence[str] = ()) -> Callable[..., ElementKind]:
    """Decorate a function of points (points, 3) [m] and named numbers that gives rows (rows,), zero at rest."""
    if not isinstance(rows, int) or rows < 1:
        raise ElementError(
            f"rows is {rows!r}; a deformation has one row or more. An energy is written with @energy.",
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
