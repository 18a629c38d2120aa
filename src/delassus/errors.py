"""What Delassus raises and warns with: one base class, each error carries its data."""

import sys
import warnings
from pathlib import Path
from types import FrameType


class DelassusError(Exception):
    """Base class of every error that Delassus raises on its own account."""


class DelassusWarning(UserWarning):
    """Something was repaired or skipped, or takes longer than it need; the result is right all the same."""


def expect(what: str, value: object, kind: type, example: str) -> None:
    """Raise a `TypeError` unless an argument is of the kind that it has to be; the example shows how to make one."""
    if not isinstance(value, kind):
        raise TypeError(f"{what} has the type {type(value).__name__}; it needs {kind.__name__}, such as {example}.")


def warn(message: str) -> None:
    """Give a `DelassusWarning` at the innermost line outside of this package: the one that its user can change."""
    package, level = str(Path(__file__).parent), 2
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and Path(frame.f_code.co_filename).is_relative_to(package):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, DelassusWarning, stacklevel=level)
