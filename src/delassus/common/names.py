"""Lookup of the parts of a model by name or pattern; errors suggest the nearest names."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol, TypeVar

from delassus.errors import BadArgument, DelassusError, short

FEW_NAMES: Final = 8
"""Largest number of names that an error lists if none is similar to the unknown one."""


class UnknownName(DelassusError, KeyError):
    """An unknown name of a part of the model; `nearest` has the most similar known names."""

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
    """A tuple of names or patterns, from one or several, such as "*_foot"."""
    try:
        names = (x,) if isinstance(x, str) else tuple(x)
    except TypeError:  # not iterable
        names = (x,)
    for name in names:
        if not isinstance(name, str):
            raise BadArgument(
                f"{what} has {short(repr(name))}; it must be a name or pattern, or several of them.", code="wrong-type"
            )
    return names


def matching(pattern: str, parts: Iterable[Part]) -> list[Part]:
    """The parts whose names match a shell pattern with `*`, `?` and `[…]`, which is case-sensitive."""
    return [part for part in parts if fnmatch.fnmatchcase(part.name, pattern)]


def find_by_pattern(what: str, pattern: str, parts: Sequence[Part], code: str) -> list[Part]:
    """The parts whose names match a pattern; raise an error with the nearest names if there are none."""
    matches = matching(pattern, parts)
    if not matches:
        raise UnknownName(what, pattern, [part.name for part in parts], code=code)
    return matches
