"""Lookup of the parts of a model by name or pattern; errors suggest the nearest names."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol, TypeVar

from delassus.errors import BadArgument, DelassusError, short

FEW_NAMES: Final = 8
"""As many names are listed where none of them resembles the one that is missing."""


class UnknownName(DelassusError, KeyError):
    """A frame or joint that the model does not have; `name`, and the `nearest` names that it has."""

    code = "unknown-name"

    def __init__(self, what: str, name: str, known: Sequence[str], *, code: str | None = None) -> None:
        self.name = name
        self.nearest = difflib.get_close_matches(name, known, n=5, cutoff=0.4)
        if self.nearest:
            hint = f" The nearest are: {', '.join(self.nearest)}."
        elif not known:
            hint = " It has none."
        else:
            few = f": {', '.join(known)}" if len(known) <= FEW_NAMES else ""
            hint = f" It has {len(known)} of them{few}."
        super().__init__(f"the model has no {what} {name!r}.{hint}", code=code)

    def __str__(self) -> str:
        return str(self.args[0])


class NamedPart(Protocol):
    """A part of a model."""

    @property
    def name(self) -> str:
        """The name by which users refer to the part."""


Part = TypeVar("Part", bound=NamedPart)


def name_patterns(what: str, x: Any) -> tuple[str, ...]:
    """Names or patterns, or one of them, such as "*_foot"."""
    try:
        found = (x,) if isinstance(x, str) else tuple(x)
    except TypeError:  # it has no elements
        found = (x,)
    for name in found:
        if not isinstance(name, str):
            raise BadArgument(
                f"{what} has {short(repr(name))}; it must be a name or pattern, or several of them.", code="wrong-type"
            )
    return found


def matching(pattern: str, parts: Iterable[Part]) -> list[Part]:
    """The parts whose names match a pattern of the shell: `*`, `?` and `[…]`; upper case is not lower case."""
    return [part for part in parts if fnmatch.fnmatchcase(part.name, pattern)]


def find_by_pattern(what: str, pattern: str, parts: Sequence[Part], code: str) -> list[Part]:
    """The parts whose names match a pattern; an error with the nearest names if there are none."""
    found = matching(pattern, parts)
    if not found:
        raise UnknownName(what, pattern, [part.name for part in parts], code=code)
    return found
