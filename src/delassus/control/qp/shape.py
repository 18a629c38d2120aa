"""The structure of a program that is known at compile time: sizes, cones, zeros of its matrices."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy

import delassus.numpy as np
from delassus.errors import BadArgument


class QPError(BadArgument):
    """Invalid data of a quadratic program."""


@dataclass(frozen=True)
class QPShape:
    """min ½ xᵀ H x + gᵀ x  with  A x = b,  lower ≤ C x ≤ upper,  and K x + k in second-order cones.

    Attributes:
        n: Number of unknowns.
        equalities: Number of rows of A.
        rows: Number of rows of C.
        cones: Number of rows of each cone, its axis last: ‖(K x + k) without the last‖ ≤ the last.
        zeros: Nonzero patterns of H, A, C and K, as strings of "0" and "1" row by row, or "" for dense ones. Structural
            zeros cost nothing.
    """

    n: int
    equalities: int = 0
    rows: int = 0
    cones: tuple[int, ...] = ()
    zeros: tuple[str, str, str, str] = ("", "", "", "")

    @property
    def cone_rows(self) -> int:
        """Number of rows of K."""
        return sum(self.cones)

    @property
    def multipliers(self) -> int:
        """Number of rows of A, C and K."""
        return self.equalities + self.rows + self.cone_rows

    @property
    def spans(self) -> tuple[slice, ...]:
        """The slice of each cone in K."""
        offsets = numpy.cumsum((0, *self.cones))
        return tuple(slice(int(a), int(b)) for a, b in pairwise(offsets))

    def without_zeros(self, *matrices: Any) -> list[Any]:
        """H, A, C and K with exact zeros outside of the pattern."""
        return [_mask(matrix, zeros) for matrix, zeros in zip(matrices, self.zeros, strict=True)]


def pattern_of(matrix: Any) -> str:
    """The nonzero pattern of a matrix, or the union of those of a batch (…, rows, n)."""
    matrix = numpy.asarray(matrix)
    nonzero = (matrix != 0.0).any(axis=tuple(range(matrix.ndim - 2))) if matrix.ndim > 2 else matrix != 0.0
    return "".join("1" if x else "0" for x in nonzero.ravel())


def _mask(matrix: Any, zeros: str) -> Any:
    if not zeros or "0" not in zeros:
        return matrix
    mask = numpy.array([x == "1" for x in zeros]).reshape(matrix.shape)
    return np.array(mask.astype(float)) * matrix
