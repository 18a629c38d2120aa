"""A programme in units of its own, in which no row and no unknown is much larger than the others.

x = D x', and rows and columns are divided by their lengths, a few times in turn (Ruiz 2001): newtons beside rad/s²,
weights of 1e-6 beside weights of 1e3 look alike then. Rows of one cone share a factor, so cones stay what they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.contact.solvers.smooth import Turned, second_order, slopes
from delassus.control.programmes.shape import ProgrammeShape

PASSES: Final = 2
"""How often rows and columns are divided in turn."""

_LEAST: Final = 1e-24
"""Rows and columns whose squared length is below are left as they are."""

FAR: Final = 1e100
"""Bounds beyond count as this: their differences are still numbers."""


class Data(NamedTuple):
    """min ½ xᵀ H x + gᵀ x  with  A x = b,  lower ≤ C x ≤ upper,  K x + k in cones."""

    H: Any
    g: Any
    A: Any
    b: Any
    C: Any
    lower: Any
    upper: Any
    K: Any
    k: Any


class Scaled(NamedTuple):
    """A programme whose rows of C and K are one matrix R, with what they are divided by.

    `offset` is k for rows of cones and zero for others. x is `column` times the scaled unknowns, rows are `equal` and
    `row` times those of the programme; `per_column` and so on are one over them.
    """

    shape: ProgrammeShape
    H: Any
    g: Any
    A: Any
    b: Any
    R: Any
    offset: Any
    lower: Any
    upper: Any
    column: Any
    equal: Any
    row: Any
    per_column: Any
    per_equal: Any
    per_row: Any

    @classmethod
    def of(cls, shape: ProgrammeShape, data: Data) -> Scaled:
        """Of a programme; a row whose bounds contradict each other is held to the middle between them."""
        H, A, C, K = shape.without_zeros(data.H, data.A, data.C, data.K)
        middle = 0.5 * (data.lower + data.upper)
        crossed = data.lower > data.upper
        lower, upper = (np.clip(np.where(crossed, middle, x), -FAR, FAR) for x in (data.lower, data.upper))
        R = np.concatenate([C, K]) if shape.cone_rows else C
        column, equal, row = factors(shape, H, A, R)
        H = column[:, None] * H * column
        A, R = equal[:, None] * A * column, row[:, None] * R * column
        m = shape.rows
        offset = np.concatenate([np.zeros(m), row[m:] * data.k])
        bounds = (lower * row[:m], upper * row[:m])
        units = (column, equal, row, 1.0 / column, 1.0 / equal, 1.0 / row)
        return cls(shape, H, column * data.g, A, equal * data.b, R, offset, *bounds, *units)

    def excess(self, s: Any) -> Any:
        """s (rows and cone rows,) minus its nearest allowed point."""
        m = self.shape.rows
        return np.concatenate([s[:m] - np.clip(s[:m], self.lower, self.upper), self.off_cones(s[m:])])

    def off_cones(self, s: Any) -> Any:
        """s (cone rows,) minus the nearest points of the cones."""
        parts = [np.zeros(0)]
        for own, (turned, _) in self._turned(s):
            parts.append(own - np.concatenate([turned.share * own[:-1], turned.h[None]]))
        return np.concatenate(parts)

    def cone_slopes(self, s: Any) -> Iterator[tuple[Any, Any]]:
        """The rows of R and the Jacobian of `off_cones`, cone by cone."""
        for span, (own, (turned, direction)) in zip(self.shape.spans, self._turned(s), strict=True):
            m = self.shape.rows
            yield self.R[m + span.start : m + span.stop], np.eye(len(own)) - slopes(turned, direction)

    def _turned(self, s: Any) -> Iterator[tuple[Any, tuple[Turned, Any]]]:
        for span in self.shape.spans:
            own = s[span]
            t = np.sqrt(np.sum(own[:-1] * own[:-1]))
            yield own, (second_order(t, own[-1], 1.0, 0.0), own[:-1] / np.where(t > 0.0, t, 1.0))


def factors(shape: ProgrammeShape, H: Any, A: Any, R: Any) -> tuple[Any, Any, Any]:
    """What to multiply columns, rows of A and rows of R with, so that all have about the same length."""
    H, A, R = H * H, A * A, R * R
    column, equal, row = np.ones(shape.n), np.ones(shape.equalities), np.ones(len(R))  # squares, until the end
    for _ in range(PASSES):
        lengths = column * product(H, column)
        lengths = lengths + column * (product(A.T, equal) + product(R.T, row))
        own = [_tame(equal * product(A, column)), _shared(shape, _tame(row * product(R, column)))]
        column, equal, row = column / np.sqrt(_tame(lengths)), equal / np.sqrt(own[0]), row / np.sqrt(own[1])
    return np.sqrt(column), np.sqrt(equal), np.sqrt(row)


def _tame(lengths: Any) -> Any:
    return np.where(lengths > _LEAST, lengths, 1.0)


def _shared(shape: ProgrammeShape, lengths: Any) -> Any:
    """One length for all rows of a cone: that of its longest row."""
    parts = [lengths[: shape.rows]]
    for span in shape.spans:
        own = lengths[shape.rows + span.start : shape.rows + span.stop]
        parts.append(np.max(own) + np.zeros(len(own)))
    return np.concatenate(parts)


def product(M: Any, x: Any) -> Any:
    """M x, of a matrix that may have no rows or columns."""
    return M @ x if M.size else np.zeros(len(M))
