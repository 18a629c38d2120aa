"""What simulations are given, checked: numbers that are numbers, counts, states of the same scene."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.errors import BadArgument, short


class SimulationError(BadArgument):
    """A simulation that cannot be: a ground, a start, a control or a step that makes no sense."""


class RunError(SimulationError):
    """A run that a function of the user ended at a `time` [s]; `log` is what had been simulated until then."""

    code = "function-failed"

    def __init__(self, sentence: str, time: float, *, code: str | None = None) -> None:
        super().__init__(sentence, code=code)
        self.time = time
        self.log: Any = None


def numbers(what: str, x: Any, copy: bool = True) -> NDArray[np.float64]:
    """An array of real numbers; a copy, if it is to be kept."""
    try:
        array = np.asarray(x)
        if array.dtype.kind in "biuf":
            return array.astype(float, copy=copy)
    except ValueError:
        pass  # rows of different lengths
    raise SimulationError(f"{what} is {short(repr(x))}; it is a number or an array of numbers.", code="not-a-number")


def number(what: str, x: Any, least: float = -math.inf, most: float = math.inf, hint: str = "") -> float:
    """One finite number within bounds."""
    try:
        value = float(x) if not isinstance(x, (bool, str, bytes)) else math.nan
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not (math.isfinite(value) and least <= value <= most):
        raise SimulationError(f"{what} is {short(repr(x))}; it is {hint or 'a finite number'}.", code="out-of-range")
    return value


def flag(what: str, x: Any) -> bool:
    """Yes or no."""
    if not isinstance(x, (bool, np.bool_)):
        raise SimulationError(f"{what} is {short(repr(x))}; it is True or False.", code="not-a-boolean")
    return bool(x)


def count(what: str, x: Any, least: int, most: int | None = None) -> int:
    """A whole number."""
    whole = isinstance(x, (int, np.integer)) and not isinstance(x, bool)
    if not whole or x < least or (most is not None and x > most):
        span = f"from {least} on" if most is None else f"from {least} to {most:.0e}"
        raise SimulationError(f"{what} is {short(repr(x))}; it is a whole number {span}.", code="not-a-whole-number")
    return int(x)


def names(what: str, x: Any) -> tuple[str, ...]:
    """Names or patterns, or one of them."""
    if isinstance(x, str):
        return (x,)
    try:
        found = tuple(x)
    except TypeError:
        found = (None,)
    if not all(isinstance(name, str) for name in found):
        raise SimulationError(
            f"{what} is {short(repr(x))}; it is a name or pattern, or several of them.", code="wrong-type"
        )
    return found


def last_axis(what: str, x: Any, n: int, of: str) -> NDArray[np.float64]:
    """Numbers (…, n)."""
    array = numbers(what, x)
    if array.shape[-1:] != (n,):
        raise SimulationError(f"{what} has shape {array.shape}; its last axis has the {n} {of}.", code="wrong-shape")
    return array
