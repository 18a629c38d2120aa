"""Linear interpolation in tables, `np.interp`, whose numbers may be constants or traced."""

from __future__ import annotations

from typing import Any

import numpy as np

from delassus.compiler.array import Array
from delassus.compiler.graph import FALSE, Builder
from delassus.compiler.handlers import handles
from delassus.compiler.lifting import floats


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
    ends = [values[k] if end is None else trace.lift(end).ids.item() for k, end in ((0, left), (-1, right))]
    line = _Line(trace.builder, knots, values, *ends)
    return trace.map(line.at, points)


class _Line:
    """A line of straight pieces."""

    def __init__(self, g: Builder, knots: list[int], values: list[int], left: int, right: int) -> None:
        self.g, self.knots, self.values, self.left, self.right = g, knots, values, left, right
        numbers = np.array([g.constants[-v] if v <= 0 else np.nan for v in (*knots, *values)])
        with np.errstate(all="ignore"):
            run, rise = np.diff(numbers.reshape(2, -1))
            self.plain = bool(np.isfinite(numbers).all() and np.isfinite(rise / run).all())

    def at(self, x: int) -> int:
        """The value at x; NaN for NaN, except, as in NumPy, on a line of one point."""
        g, first, last = self.g, self.knots[0], self.knots[-1]
        inside = self._between(x) if len(self.knots) > 1 else self.values[0]
        inside = g.select(g.eq(x, last), self.values[-1], inside)
        found = g.select(g.lt(x, first), self.left, g.select(g.lt(last, x), self.right, inside))
        return found if len(self.knots) == 1 else g.select(g.ne(x, x), x, found)

    def _between(self, x: int) -> int:
        """The value between the first and the last knot, those not included."""
        g, knots, values = self.g, self.knots, self.values
        if self.plain:  # slopes are constants
            slopes = [
                g.div(g.sub(values[k + 1], values[k]), g.sub(knots[k + 1], knots[k])) for k in range(len(knots) - 1)
            ]
            start, height, slope = self._chosen(x, knots[:-1], values[:-1], slopes)
            return g.add(g.mul(slope, g.sub(x, start)), height)
        start, end, height, other = self._chosen(x, knots[:-1], knots[1:], values[:-1], values[1:])
        slope = g.div(g.sub(other, height), g.sub(end, start))
        here = g.add(g.mul(slope, g.sub(x, start)), height)
        there = g.add(g.mul(slope, g.sub(x, end)), other)  # where NumPy goes if the first way leads to NaN
        level = g.logical_and(g.ne(there, there), g.eq(height, other))
        found = g.select(g.ne(here, here), g.select(level, height, there), here)
        return g.select(g.eq(x, start), height, found)

    def _chosen(self, x: int, *columns: list[int]) -> list[int]:
        """Of each column, the element of the last piece that starts at or below x."""
        g = self.g
        found = [column[0] for column in columns]
        for k in range(1, len(self.knots) - 1):
            reached = g.le(self.knots[k], x)
            if reached != FALSE:
                found = [g.select(reached, column[k], before) for column, before in zip(columns, found, strict=True)]
        return found
