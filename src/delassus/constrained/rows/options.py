"""Options of the solvers, checked: what they are, what they have to be, and what to give instead."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy

from delassus.errors import BadArgument, short

MOST_ITERATIONS = 10**9
MOST_UNROLLED = 10_000


def check_iterations(iterations: Any) -> None:
    """Raise unless it is a whole number, 1 or more, and not beyond what anybody would wait for."""
    if not isinstance(iterations, (int, numpy.integer)) or isinstance(iterations, bool) or iterations < 1:
        raise BadArgument(
            f"iterations is {short(repr(iterations))}; it is a whole number, 1 or more.", code="not-a-whole-number"
        )
    if iterations > MOST_ITERATIONS:
        raise BadArgument(
            f"iterations is {short(repr(iterations), 30)}; {MOST_ITERATIONS:.0e} is the most.",
            code="iterations-out-of-range",
        )


def check_unrolled(iterations: Any) -> None:
    """Raise unless it is a number of iterations that can be compiled one after the other."""
    check_iterations(iterations)
    if iterations > MOST_UNROLLED:
        raise BadArgument(
            f"iterations is {iterations}; they are compiled one after the other, and {MOST_UNROLLED} is the most. "
            "constrained_dynamics iterates to a tolerance.",
            code="iterations-out-of-range",
        )


def checked_tolerance(tolerance: Any, usual: float) -> float:
    """A number between 0 and 1; `usual` is the one to take where in doubt."""
    if not (isinstance(tolerance, (int, float, numpy.floating)) and 0.0 < tolerance < 1.0):
        raise BadArgument(
            f"the tolerance is {tolerance!r}; it is a number between 0 and 1, such as {usual:g}.",
            code="tolerance-out-of-range",
        )
    return float(tolerance)


def check_method(method: Any, known: Iterable[str]) -> None:
    """Raise unless it is the name of a method."""
    names = tuple(known)
    if not (isinstance(method, str) and method in names):
        raise BadArgument(f"there is no method {method!r}; the methods are: {', '.join(names)}.", code="unknown-method")
