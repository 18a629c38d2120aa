"""What functions are given, checked: arrays of numbers, and names out of some."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.errors import DelassusError, short


def real_array(what: str, x: Any, kind: type[DelassusError], form: str = "a number or an array of numbers") -> Any:
    """An array of real numbers, raising an error of a kind that says the `form` if there is none."""
    try:
        array: NDArray[Any] = np.asarray(x)
        if array.dtype.kind not in "biufO":  # texts, complex numbers, dates
            raise TypeError
        return array.astype(float, copy=False)
    except (TypeError, ValueError, OverflowError):
        if np.iscomplexobj(x if isinstance(x, np.ndarray) else 0.0) or isinstance(x, complex):
            form = f"{form}, and not complex"
        raise kind(f"{what} is {short(repr(x))}; it is {form}.", code="not-a-number") from None


def is_one_of(name: Any, known: Iterable[str]) -> bool:
    """Whether something is one of the names; arrays and lists are not."""
    return isinstance(name, str) and name in tuple(known)


def elements(given: Any) -> tuple[Any, ...]:
    """The elements of what has some; else the thing itself alone."""
    try:
        return (given,) if isinstance(given, str) else tuple(given)
    except TypeError:
        return (given,)
