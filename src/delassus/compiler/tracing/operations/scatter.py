"""`add_at` with traced indices: adds values to rows of an array that are chosen at run time.

An index is a traced number that holds an integer, as for `np.take`; a fraction does not count. What is added at an
index outside of the array, or at NaN, is left out. Several indices are taken one after the other, so that a row that
comes twice gets both.

Up to `FEW` rows, comparisons choose. Of more, the row is read, and written where the array lies in memory: in a loop
that carries the array, without a copy of it, if nobody needs the old one any more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from delassus.compiler.graph.graph import ZERO, Builder
from delassus.compiler.tracing.array import Array
from delassus.compiler.tracing.lifting import floats
from delassus.compiler.tracing.operations.gather import FEW, chooser


def add_at(array: Any, index: Any, values: Any) -> Array:
    """A copy of an array (n, …) with values (index.shape, …) added to its rows at an index, traced or plain."""
    base, positions, added = floats(array, index, values)
    if not base.ndim:
        raise ValueError("np.add_at adds to rows of an array; a single number has none.")
    shape = positions.shape + base.shape[1:]
    if np.broadcast_shapes(added.shape, shape) != shape:
        raise ValueError(
            f"np.add_at: values of shape {added.shape} do not fit rows {base.shape[1:]} at indices {positions.shape}."
        )
    trace, rows = base.origin, len(base)
    g, ids = trace.builder, base.ids.reshape(rows, -1)
    addends = np.broadcast_to(added.ids, shape).reshape(positions.size, -1)
    for position, addend in zip(positions.ids.ravel().tolist(), addends.tolist(), strict=True):
        columns = [k for k, value in enumerate(addend) if value != ZERO]
        if columns and rows:
            row = [addend[k] for k in columns]
            ids = ids.copy()
            ids[:, columns] = (_by_comparison if rows <= FEW else _in_memory)(
                g, position, ids[:, columns].tolist(), row
            )
    return Array(trace, ids.reshape(base.shape).copy())


def _by_comparison(g: Builder, index: int, table: list[list[int]], row: list[int]) -> list[list[int]]:
    def replace_row(k: int, old: list[int]) -> list[int]:
        is_here = g.logical_and(g.le(g.constant(float(k)), index), g.lt(index, g.constant(float(k + 1))))
        return [g.select(is_here, g.add(a, b), a) for a, b in zip(old, row, strict=True)]

    return [replace_row(k, old) for k, old in enumerate(table)]


def _in_memory(g: Builder, index: int, table: list[list[int]], row: list[int]) -> list[list[int]]:
    rows, inside = len(table), g.logical_and(g.le(ZERO, index), g.lt(index, g.constant(float(len(table)))))
    old = [chooser(g, list(column))(index) for column in zip(*table, strict=True)]
    new = [g.select(inside, g.add(a, b), a) for a, b in zip(old, row, strict=True)]
    flat = g.scatter(rows, index, new, [value for values in table for value in values])
    return [flat[k : k + len(row)] for k in range(0, len(flat), len(row))]
