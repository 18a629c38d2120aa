"""`np.interp`: linear interpolation in tables with constant or traced values.

The piece of the line is found by comparisons with all knots if they are few, and by halving if they are many.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from delassus.compiler.graph.graph import ZERO, Builder
from delassus.compiler.tracing.array import Array
from delassus.compiler.tracing.handlers import handles
from delassus.compiler.tracing.lifting import floats
from delassus.compiler.tracing.operations.gather import chooser

FEW_PIECES: Final = 24
"""Pieces of a line up to which comparing with all of them is faster than halving."""


@handles(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Array:
    """The values at `x` of the line through the points (xp, fp), `xp` increasing; beyond them `left` and `right`."""
    if period is not None:
        raise TypeError("np.interp on traced values takes no period: interpolate at x % period instead.")
    points, places, heights = floats(x, xp, fp)
    if places.ndim != 1 or places.shape != heights.shape or not places.size:
        shapes = f"{places.shape} and {heights.shape}"
        raise ValueError(f"np.interp: xp and fp are two rows of equal length, at least 1; got shapes {shapes}.")
    trace = points.origin
    knots, values = places.ids.tolist(), heights.ids.tolist()
    bounds = [values[k] if end is None else trace.lift(end).ids.item() for k, end in ((0, left), (-1, right))]
    line = _Line(trace.builder, knots, values, *bounds)
    return trace.map(line.at, points)


class _Line:
    """A line of straight pieces."""

    def __init__(self, g: Builder, knots: list[int], values: list[int], left: int, right: int) -> None:
        self.g, self.knots, self.values, self.left, self.right = g, knots, values, left, right
        constants = np.array([g.constants[-v] if v <= 0 else np.nan for v in (*knots, *values)])
        with np.errstate(all="ignore"):
            run, rise = np.diff(constants.reshape(2, -1))
            self.plain = bool(np.isfinite(constants).all() and np.isfinite(rise / run).all())
        pairs = zip(range(len(knots) - 1), range(1, len(knots)), strict=True)
        slopes = [g.div(g.sub(values[j], values[i]), g.sub(knots[j], knots[i])) for i, j in pairs if self.plain]
        columns_at_end = [slopes] if self.plain else [knots[1:], values[1:]]
        self.columns = [
            knots[:-1],
            values[:-1],
            *columns_at_end,
        ]  # of each piece: start, height, and slope or end and its height
        self.many = len(knots) - 1 > FEW_PIECES
        if self.many:
            self.choosers = [chooser(g, column) for column in self.columns]
            missing = (1 << (len(knots) - 2).bit_length()) - len(knots) + 1
            self.start_of = chooser(g, [*knots[:-1], *[g.constant(math.inf)] * missing])

    def at(self, x: int) -> int:
        """The value at x; NaN for NaN, except, as in NumPy, on a line of one point."""
        g, first, last = self.g, self.knots[0], self.knots[-1]
        inside = self._between(x) if len(self.knots) > 1 else self.values[0]
        inside = g.select(g.eq(x, last), self.values[-1], inside)
        value = g.select(g.lt(x, first), self.left, g.select(g.lt(last, x), self.right, inside))
        return value if len(self.knots) == 1 else g.select(g.ne(x, x), x, value)

    def _between(self, x: int) -> int:
        """The value between the first and the last knot, those not included."""
        g = self.g
        start, height, *end_values = self._search_by_bisection(x) if self.many else self._search_by_comparison(x)
        if self.plain:
            return g.add(g.mul(end_values[0], g.sub(x, start)), height)
        end, other = end_values
        slope = g.div(g.sub(other, height), g.sub(end, start))
        from_start = g.add(g.mul(slope, g.sub(x, start)), height)
        from_end = g.add(g.mul(slope, g.sub(x, end)), other)  # where NumPy goes if the first way leads to NaN
        level = g.logical_and(g.ne(from_end, from_end), g.eq(height, other))
        value = g.select(g.ne(from_start, from_start), g.select(level, height, from_end), from_start)
        return g.select(g.eq(x, start), height, value)

    def _search_by_comparison(self, x: int) -> list[int]:
        """The columns of the last piece that starts at or below x, by comparisons with all."""
        g, entries = self.g, [column[0] for column in self.columns]
        for k in range(1, len(self.knots) - 1):
            is_reached = g.le(self.knots[k], x)
            entries = [g.select(is_reached, column[k], old) for column, old in zip(self.columns, entries, strict=True)]
        return entries

    def _search_by_bisection(self, x: int) -> list[int]:
        """The columns of the last interval that starts at or below x, by bisection."""
        g, piece = self.g, ZERO
        step = 1 << (len(self.knots) - 2).bit_length()
        while step > 1:
            step //= 2
            middle = g.add(piece, g.constant(float(step)))
            piece = g.select(g.le(self.start_of(middle), x), middle, piece)
        return [choose(piece) for choose in self.choosers]
