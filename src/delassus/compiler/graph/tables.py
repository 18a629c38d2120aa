"""Tables read or written at an index known at run time, for `np.take` and `np.add_at`.

A program reads an entry of a table by ("lookup", source, index), and one of its own values by ("gather", index,
*values). It replaces a row of its values by ("scatter", rows, index, *row, *values). The index is a float. Its fraction
is ignored, an index that is too small or too large means the first or the last position, and NaN the first. Lowering
enforces this, so that no back end can read outside the table.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.compiler.graph.graph import ZERO, Builder
from delassus.compiler.graph.precision import Precision
from delassus.errors import DelassusError


class Constants:
    """Numbers that belong to a program, in a row; compared by content."""

    def __init__(self, numbers: Any) -> None:
        self.numbers: NDArray[np.float64] = np.array(numbers, float).ravel()
        self.numbers.setflags(write=False)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the numbers."""
        return hashlib.sha256(self.numbers.astype("<f8").tobytes()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constants) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<{self.numbers.size} constants {self.digest}>"

    def rounded(self, precision: Precision) -> NDArray[Any]:
        """The numbers in a precision, subnormal ones as zero."""
        with np.errstate(over="ignore"):
            rounded = self.numbers.astype(precision.dtype)
        return np.where(np.abs(rounded) < precision.smallest, precision.dtype.type(0.0), rounded)


@dataclass(frozen=True)
class Source:
    """Places of a table in regular steps: `size` of them, from the `first` one on.

    The table is one of constants, or a shared operand of the kernel, given by its number among the inputs.
    """

    table: Constants | int
    first: int
    step: int
    size: int


def inside(g: Builder, index: int, size: int) -> int:
    """An index as one of 0 … size - 1, with a fraction perhaps; 0 for NaN."""
    if size > 2 ** (g.precision.digits + 1):
        raise DelassusError(
            f"a table of {size} numbers is too long for {g.precision.name}, which counts to "
            f"{2 ** (g.precision.digits + 1)} without gaps: use float64, or a shorter table.",
            code="kernel-too-large",
        )
    last = g.constant(float(size - 1))
    positive = g.select(g.lt(ZERO, index), index, ZERO)
    return g.select(g.lt(positive, last), positive, last)
