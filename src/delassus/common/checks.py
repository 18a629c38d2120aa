"""Argument checks. Each type of mistake has one function, one error code and one error class in the whole package.

Messages start with `what`, the caller's name of the argument. Arrays with a value for each state of a batch may contain
NaN, which affects only its own state and is reported by the status. A single value for all states must not be NaN.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from types import EllipsisType
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delassus.errors import BadArgument, NotANumber, OutOfRange, UnknownOption, WrongShape, short


class Range(NamedTuple):
    """A range of numbers.

    Attributes:
        least: The smallest number.
        most: The largest number.
        form: The range in words.
        code: The code of the error for a number outside the range.
        open_below: Whether `least` itself is outside.
        open_above: Whether `most` itself is outside.
    """

    least: float
    most: float
    form: str
    code: str = "out-of-range"
    open_below: bool = False
    open_above: bool = False

    def outside(self, x: Any) -> Any:
        """Whether numbers are outside the range; false for NaN."""
        below = x <= self.least if self.open_below else x < self.least
        return below | (x >= self.most if self.open_above else x > self.most)


TIME_STEPS: Final = Range(1e-12, 1.0, "from 1e-12 to 1 s, such as 1e-3", code="time-step-out-of-range")
FRICTIONS: Final = Range(0.0, math.inf, "zero or more", code="friction-out-of-range")
RESTITUTIONS: Final = Range(0.0, 1.0, "from 0, where bodies stick, to 1, without loss", code="restitution-out-of-range")
TOLERANCES: Final = Range(
    0.0, 1.0, "between 0 and 1, such as 1e-8", code="tolerance-out-of-range", open_below=True, open_above=True
)
SHARES: Final = Range(0.0, 1.0, "from 0 to 1")
POSITIVE: Final = Range(0.0, math.inf, "positive and finite", open_below=True, open_above=True)
NOT_NEGATIVE: Final = Range(0.0, math.inf, "zero or more")
FINITE: Final = Range(-math.inf, math.inf, "finite", code="not-finite", open_below=True, open_above=True)

MOST_ITERATIONS: Final = 10**9
"""Largest number of iterations, far more than are practical."""


def real_array(
    what: str, x: Any, form: str = "a number or an array of numbers", code: str = OutOfRange.code
) -> NDArray[np.float64]:
    """An array of real numbers (…); `form` describes valid values, `code` is that of integers too large for floats."""
    try:
        array: NDArray[Any] = np.asarray(x)
        if array.dtype.kind not in "biufO" or (array.dtype.kind == "b" and not array.ndim):
            raise TypeError  # strings, complex numbers, dates, True
        if array.dtype.kind == "O" and array.size and not all(is_real(each) for each in array.flat):
            raise TypeError
        return array.astype(float, copy=False)
    except OverflowError:
        raise OutOfRange(
            f"{what} is {short(repr(x))}; it must be in the range of floating-point numbers.", code=code
        ) from None
    except (TypeError, ValueError):
        if np.iscomplexobj(x if isinstance(x, np.ndarray) else 0.0) or isinstance(x, complex):
            form = f"{form}, and not complex"
        raise NotANumber(f"{what} is {short(repr(x))}; it must be {form}.") from None


def is_real(x: Any) -> bool:
    """Whether an object is a single real number; false for booleans and strings."""
    return hasattr(x, "__float__") and not isinstance(x, (bool, np.bool_, complex)) and np.ndim(x) == 0


def number_in_range(what: str, x: Any, within: Range) -> float:
    """One number in a range."""
    array = real_array(what, x, f"a number that is {within.form}", within.code)
    if array.ndim:
        raise WrongShape(f"{what} has shape {array.shape}; it must be one number that is {within.form}.")
    if math.isnan(array) or within.outside(array):
        raise OutOfRange(f"{what} is {short(repr(x))}; it must be {within.form}.", code=within.code)
    return float(array)


def numbers_in_range(what: str, x: Any, within: Range) -> NDArray[np.float64]:
    """Numbers (…) in a range; NaN in an array passes."""
    array = real_array(what, x, f"a number that is {within.form}", within.code)
    if not array.ndim:
        return np.asarray(number_in_range(what, x, within))
    wrong = array[within.outside(array)]
    if wrong.size:
        raise OutOfRange(f"{what} has {wrong.flat[0]:.6g}; it must be {within.form}.", code=within.code)
    return array


def positive_number(what: str, x: Any) -> float:
    """One number, positive and finite."""
    return number_in_range(what, x, POSITIVE)


def check_integer(
    what: str, x: Any, least: int = 1, most: int | None = None, code: str = OutOfRange.code, *, remedy: str = ""
) -> int:
    """Check an integer from `least` to `most`, and return it."""
    span = f"{least} or more" if most is None else f"from {least} to {most if most <= 10**6 else f'{most:.0e}'}"
    if not isinstance(x, (int, np.integer)) or isinstance(x, bool):
        raise NotANumber(f"{what} is {short(repr(x))}; it must be an integer, {span}.", code="not-a-whole-number")
    if x < least or (most is not None and x > most):
        raise OutOfRange(f"{what} is {short(repr(x), 30)}; it must be {span}.{remedy}", code=code)
    return int(x)


def iteration_count(what: str, x: Any) -> int:
    """Check a number of iterations, and return it."""
    return check_integer(what, x, 1, MOST_ITERATIONS, code="iterations-out-of-range")


def boolean(what: str, x: Any) -> bool:
    """Check that an argument is True or False, and return it."""
    if not isinstance(x, (bool, np.bool_)):
        raise BadArgument(f"{what} is {short(repr(x))}; it must be True or False.", code="not-a-boolean")
    return bool(x)


def array_of_shape(
    what: str, x: Any, shape: tuple[int | EllipsisType, ...], of: str = "", form: str = "an array of numbers"
) -> NDArray[np.float64]:
    """An array of numbers with a shape; (…, n) allows any leading axes. `of` describes the axes in words."""
    array = real_array(what, x, form)
    core = tuple(n for n in shape if not isinstance(n, EllipsisType))
    batch = len(core) < len(shape)
    if (array.shape[array.ndim - len(core) :] if batch and array.ndim >= len(core) else array.shape) != core:
        written = f"({', '.join((['…'] if batch else []) + [str(n) for n in core])}{',' if len(shape) == 1 else ''})"
        raise WrongShape(f"{what} has shape {array.shape}; it needs {written}{of and ', ' + of}.")
    return array


def one_of(what: str, x: Any, known: Iterable[str], code: str = UnknownOption.code) -> str:
    """Check that an argument is one of the known words, and return it."""
    words = tuple(known)
    if isinstance(x, str) and x in words:
        return x
    nearest = tuple(difflib.get_close_matches(x, words, n=2)) if isinstance(x, str) else ()
    hint = f" The nearest: {' or '.join(map(repr, nearest))}." if nearest else ""
    error = UnknownOption(
        f"{what} is {short(repr(x))}; it must be one of: {', '.join(map(repr, words))}.{hint}", code=code
    )
    error.nearest = nearest
    raise error


def elements(given: Any) -> tuple[Any, ...]:
    """The elements of an iterable as a tuple; a string or an object that is not iterable is the only element."""
    try:
        return (given,) if isinstance(given, str) else tuple(given)
    except TypeError:
        return (given,)
