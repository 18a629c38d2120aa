"""The table of pairs of shapes. Each registers itself next to its contact function.

    @pair("capsule", "capsule", points=1)
    def nearest_on_axes(one: Placed, other: Placed) -> list[Touch]: ...

A function returns as many contacts as the entry has points, in every state; unused ones have large gaps. Normals point
from the other shape to the first, and points are on the first. A pair may have several entries. A `mutual` entry is
applied in both directions, so also to the second shape on the first. The order of two shapes does not matter: the entry
of (capsule, box) is also used for (box, capsule).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from delassus.geometry.approach import Approach
from delassus.geometry.shapes.registry import SHAPES, Placed, Touch

PairFunction: TypeAlias = Callable[[Placed, Placed], list[Touch]]
NearFunction: TypeAlias = Callable[[Placed, Placed, Approach], list[Touch]]
F = TypeVar("F", bound=PairFunction)


@dataclass(frozen=True)
class PairEntry:
    """The contact function of two types of shapes, its number of points by the size of the first shape, and whether it
    is applied in both directions.

    `touches_within` has the possible approach as a third argument. For shapes that cannot touch within it, it returns
    absent contacts without a complete narrow phase.
    """

    touches: PairFunction
    points: Callable[[Any], int]
    mutual: bool = False
    touches_within: NearFunction | None = None


PAIRS: Final[dict[tuple[str, str], tuple[PairEntry, ...]]] = {}
"""The entries of all pairs, by the names of both shapes in one order."""


def pair(
    one: str,
    other: str,
    *,
    points: int | Callable[[Any], int],
    mutual: bool = False,
    touches_within: NearFunction | None = None,
) -> Callable[[F], F]:
    """Register a function of two placed shapes in the table; `points` may depend on the size of the first shape."""
    for name in (one, other):
        if name not in SHAPES:
            raise ValueError(f"there is no shape {name!r}; the shapes are {', '.join(SHAPES)}.")
    if one != other and (other, one) in PAIRS:
        raise ValueError(f"the pair of {other} and {one} is registered already: use the same order of both shapes.")

    def register(function: F) -> F:
        count = points if callable(points) else lambda size: points
        PAIRS[one, other] = (*PAIRS.get((one, other), ()), PairEntry(function, count, mutual, touches_within))
        return function

    return register


def partners(name: str) -> list[str]:
    """The shapes that a shape may touch, in alphabetical order."""
    return sorted({b if a == name else a for a, b in PAIRS if name in (a, b)})


def describe_pairs() -> str:
    """The table as text, shape by shape, with each pair once."""
    lines, named = [], set[str]()
    for name in sorted(SHAPES, key=lambda name: -len(partners(name))):
        others = [other for other in partners(name) if other not in named]
        named.add(name)
        if others:
            lines.append(f"{name} with {', '.join(others)}")
    return "; ".join(lines)
