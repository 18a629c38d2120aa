"""A scaled program, in which rows and unknowns have similar magnitudes.

x = D x', and rows and columns are repeatedly divided by the roots of their norms (Ruiz 2001), so that newtons and
rad/s², or weights of 1e-6 and 1e3, have similar magnitudes. Rows of one cone share a factor, so cones do not change.
The cost is divided by its magnitude: scaling all weights does not change x.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.contact.systems.smooth import RadialProjection, second_order, slopes
from delassus.control.qp.shape import QPShape

PASSES: Final = 2
"""Number of scaling iterations."""

_LEAST: Final = 1e-24
"""Rows and columns with a squared norm below this fraction of the largest are rounding errors, and not scaled up."""

FAR: Final = 1e100
"""Larger bounds are set to this; differences of such bounds do not overflow."""


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
    """A program whose rows of C and K form one matrix R, and its scaling factors.

    `offset` is k for rows of cones and zero for others. x is `unknown` times the scaled unknowns; errors of rows are
    `equal` and `row` times those of the scaled rows, their multipliers `equal_push` and `row_push` times the scaled
    ones, and a gradient is `slope` times the scaled gradient.
    """

    shape: QPShape
    H: Any
    g: Any
    A: Any
    b: Any
    R: Any
    offset: Any
    lower: Any
    upper: Any
    unknown: Any
    equal: Any
    row: Any
    equal_push: Any
    row_push: Any
    slope: Any

    @classmethod
    def of(cls, shape: QPShape, data: Data) -> Scaled:
        """Scale a program; a row with inconsistent bounds is fixed at the middle between them."""
        H, A, C, K = shape.without_zeros(data.H, data.A, data.C, data.K)
        middle = 0.5 * (data.lower + data.upper)
        crossed = data.lower > data.upper
        lower, upper = (np.clip(np.where(crossed, middle, x), -FAR, FAR) for x in (data.lower, data.upper))
        R = np.concatenate([C, K]) if shape.cone_rows else C
        column, equal, row, curved = factors(shape, H, A, R)
        m, steep, b = shape.rows, column * data.g, equal * data.b
        offset = np.concatenate([np.zeros(m), row[m:] * data.k])
        lower, upper = lower * row[:m], upper * row[:m]
        # Estimate of the magnitude of x: from the minimum of the cost, and the distance of the rows from zero.
        cauchy_length = np.where(curved > 0.0, largest(steep) / _or_one(curved), 0.0)
        size = _or_one(np.maximum(cauchy_length, largest(b, np.clip(np.zeros(m), lower, upper), offset)))
        cost = 1.0 / np.where(curved > 0.0, curved, _or_one(largest(steep) / size))
        units = (
            column * size,
            size / equal,
            size / row,
            equal * size / cost,
            row * size / cost,
            size / (cost * column),
        )
        H, A, R = cost * column[:, None] * H * column, equal[:, None] * A * column, row[:, None] * R * column
        return cls(shape, H, cost * steep / size, A, b / size, R, offset / size, lower / size, upper / size, *units)

    def excess(self, s: Any) -> Any:
        """s (rows and cone rows,) minus its projection onto the feasible set."""
        m = self.shape.rows
        return np.concatenate([s[:m] - np.clip(s[:m], self.lower, self.upper), self.off_cones(s[m:])])

    def off_cones(self, s: Any) -> Any:
        """s (cone rows,) minus its projections onto the cones."""
        parts = [np.zeros(0)]
        for part, (projection, _) in self._rotate_cones(s):
            parts.append(part - np.concatenate([projection.share * part[:-1], projection.h[None]]))
        return np.concatenate(parts)

    def cone_slopes(self, s: Any) -> Iterator[tuple[Any, Any]]:
        """The rows of R and the Jacobian of `off_cones`, cone by cone."""
        for span, (part, (projection, direction)) in zip(self.shape.spans, self._rotate_cones(s), strict=True):
            m = self.shape.rows
            yield self.R[m + span.start : m + span.stop], np.eye(len(part)) - slopes(projection, direction)

    def _rotate_cones(self, s: Any) -> Iterator[tuple[Any, tuple[RadialProjection, Any]]]:
        for span in self.shape.spans:
            part = s[span]
            t = np.sqrt(np.sum(part[:-1] * part[:-1]))
            yield part, (second_order(t, part[-1], 1.0, 0.0), part[:-1] / np.where(t > 0.0, t, 1.0))


def factors(shape: QPShape, H: Any, A: Any, R: Any) -> tuple[Any, Any, Any, Any]:
    """Factors of columns, rows of A and rows of R that give all of them similar norms.

    Also returns the norm of the longest scaled column of H.
    """
    H, A, R = H * H, A * A, R * R
    longest = 1.0 / _or_one(largest(np.sum(A, 1), np.sum(R, 1)))  # squares, the roots are taken at the end
    column, equal, row = np.ones(shape.n), longest * np.ones(shape.equalities), longest * np.ones(len(R))
    for _ in range(PASSES):
        curved = column * product(H, column)
        lengths = curved / _or_one(largest(curved)) + column * (product(A.T, equal) + product(R.T, row))
        row_norms = [_tame(equal * product(A, column)), _shared(shape, _tame(row * product(R, column)))]
        column, equal, row = (
            column / np.sqrt(_tame(lengths)),
            equal / np.sqrt(row_norms[0]),
            row / np.sqrt(row_norms[1]),
        )
    curved = largest(column * product(H, column))
    return np.sqrt(column), np.sqrt(equal), np.sqrt(row), np.sqrt(curved)


def largest(*arrays: Any) -> Any:
    """The largest magnitude of all values, zero if there are none."""
    maximum = np.array(0.0)
    for x in arrays:
        maximum = np.maximum(maximum, np.max(np.abs(x))) if len(x) else maximum
    return maximum


def _or_one(x: Any) -> Any:
    return np.where(x > 0.0, x, 1.0)


def _tame(lengths: Any) -> Any:
    """Squared norms; those at the level of rounding are replaced by the largest."""
    most = largest(lengths)
    return np.where(lengths > _LEAST * most, lengths, _or_one(most))


def _shared(shape: QPShape, lengths: Any) -> Any:
    """One norm for all rows of a cone: the largest."""
    parts = [lengths[: shape.rows]]
    for span in shape.spans:
        part = lengths[shape.rows + span.start : shape.rows + span.stop]
        parts.append(np.max(part) + np.zeros(len(part)))
    return np.concatenate(parts)


def product(M: Any, x: Any) -> Any:
    """M x, for a matrix that may have no rows or columns."""
    return M @ x if M.size else np.zeros(len(M))
