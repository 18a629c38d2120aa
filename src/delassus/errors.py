"""Errors, warnings and reports: one base class of errors, which carry a code and data; numbers in text."""

from __future__ import annotations

import sys
import warnings
from enum import IntEnum
from pathlib import Path
from types import FrameType
from typing import Any, Self


class DelassusError(Exception):
    """Base class of every error that Delassus raises on its own account.

    Errors can be copied and pickled, with message and data, so that they leave a worker process.

    Attributes:
        code: The mistake, as a stable word of those in docs/errors.md; messages may be reworded, codes are not.
    """

    code: str = "error"

    def __init__(self, *args: object, code: str | None = None) -> None:
        super().__init__(*args)
        if code is not None:
            self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        # Python would call the constructor with `args`, the message, of which subclasses take more and other things.
        return _restore_error, (type(self), self.args, vars(self))


def _restore_error(kind: type[DelassusError], args: tuple[object, ...], data: dict[str, object]) -> DelassusError:
    """An error of a kind with these arguments and attributes, made without its constructor."""
    base: Any = kind.__base__  # the one that lays out memory: an OSError cannot be made as a ValueError
    error: DelassusError = base.__new__(kind, *args)
    error.args = args  # those of an OSError are set by its constructor
    vars(error).update(data)
    return error


class BadArgument(DelassusError, ValueError):
    """An argument whose value makes no sense: base class of what every room says about what it was called with."""

    code = "bad-argument"


class OutOfRange(BadArgument):
    """A number, or one of an array, that lies outside of its range; NaN lies in none."""

    code = "out-of-range"


class NotANumber(BadArgument):
    """A text, None, boolean, complex number or the like where real numbers are needed."""

    code = "not-a-number"


class WrongShape(BadArgument):
    """An array, or a number, of another shape than the one that is needed."""

    code = "wrong-shape"


class UnknownOption(BadArgument):
    """A word that is none of those among which an option chooses; `nearest` are those that it resembles."""

    code = "unknown-option"
    nearest: tuple[str, ...] = ()


class DelassusWarning(UserWarning):
    """Something was repaired or skipped, or takes longer than it need; the result is right all the same."""


class Sentences(IntEnum):
    """Numbers that say what they mean: members are written as `NAME = number, "A sentence."`."""

    sentence: str

    def __new__(cls, value: int, sentence: str) -> Sentences:
        """A number with its sentence."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.sentence = sentence
        return member

    def __str__(self) -> str:
        return self.sentence

    @classmethod
    def worst_first(cls) -> tuple[Self, ...]:
        """All members, from the worst to the best: as they are written, the last first, unless a class says more."""
        return tuple(reversed(cls))


class WrongType(DelassusError, TypeError):
    """An argument of another type than the one that is needed."""

    code = "wrong-type"


def expect(what: str, value: object, kind: type, example: str) -> None:
    """Raise `WrongType` unless an argument is of the kind that it has to be; the example shows how to make one."""
    if not isinstance(value, kind):
        raise WrongType(
            f"{what} has the type {type(value).__name__}; it must be of type {kind.__name__}, such as {example}."
        )


def short(text: str, length: int = 60) -> str:
    """A text that fits into a message."""
    return text if len(text) <= length else text[: length - 3] + "..."


def warn(message: str, category: type[Warning] = DelassusWarning) -> None:
    """Give a warning at the innermost line outside of this package: the one that its user can change."""
    package, level = str(Path(__file__).parent), 2
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and Path(frame.f_code.co_filename).is_relative_to(package):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
