"""Options of the solvers, checked: what they are, what they have to be, and what to give instead."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy

from delassus.errors import DelassusError


def check_iterations(iterations: Any) -> None:
    """Raise unless it is a whole number, 1 or more."""
    if not isinstance(iterations, (int, numpy.integer)) or isinstance(iterations, bool) or iterations < 1:
        raise DelassusError(f"iterations is {iterations!r}; it is a whole number, 1 or more.")


def checked_tolerance(tolerance: Any, usual: float) -> float:
    """A number between 0 and 1; `usual` is the one to take where in doubt."""
    if not (isinstance(tolerance, (int, float, numpy.floating)) and 0.0 < tolerance < 1.0):
        raise DelassusError(f"the tolerance is {tolerance!r}; it is a number between 0 and 1, such as {usual:g}.")
    return float(tolerance)


def check_method(method: Any, known: Iterable[str]) -> None:
    """Raise unless it is the name of a method."""
    names = tuple(known)
    if not (isinstance(method, str) and method in names):
        raise DelassusError(f"there is no method {method!r}; the methods are: {', '.join(names)}.")
