"""`np.take` with traced indices: reads an element that is chosen at run time.

An index is a traced number that holds an integer, such as `floor` and `argsort` give. A compiled kernel cannot raise
for one state of a batch, so an index outside of the array counts as the nearest one inside, as NumPy's mode="clip" has
it: negative ones are not counted from the end. A fraction does not count, and NaN is the first position.

Up to `FEW` numbers are chosen from by comparisons, which several choices by one index share. More are read from
memory: those of a state where they lie in its frame, those of a plain array from a table of constants, and those of a
shared array where it lies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.compiler.graph.graph import Builder
from delassus.compiler.graph.tables import Constants, Source
from delassus.compiler.tracing.array import Array
from delassus.compiler.tracing.handlers import HANDLERS, handles
from delassus.compiler.tracing.lifting import floats
from delassus.compiler.tracing.operations.movement import moves
from delassus.compiler.tracing.shared import SharedArray
from delassus.compiler.tracing.trace import trace_of

FEW: Final = 8
"""Numbers up to which comparisons are faster than memory."""

_take_by_integers = moves(np.take)


@handles(np.take)
def take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Array:
    """The elements of an array along an axis (of the flat array, without one) at some indices."""
    if trace_of(indices) is None:
        result: Array = _take_by_integers(a, indices, axis, mode=mode)
        return result
    (positions,) = floats(indices)
    if mode not in ("raise", "clip", "wrap"):
        raise ValueError(f"np.take: mode is 'raise', 'clip' or 'wrap', not {mode!r}.")
    trace = positions.origin
    table = np.asarray(a) if trace_of(a) is None else trace.lift(a)
    if axis is None:
        table, axis = table.reshape(-1), 0
    (axis,) = np.lib.array_utils.normalize_axis_tuple(axis, table.ndim)
    count = table.shape[axis]
    if count == 0:
        raise IndexError(f"np.take: no element can be taken along axis {axis} of an array of shape {table.shape}.")
    if mode == "wrap":
        positions = HANDLERS[np.remainder](positions, float(count))
    other_axes = table.shape[:axis] + table.shape[axis + 1 :]
    straight = table.straight(axis) if isinstance(table, SharedArray) and count > FEW else None
    if isinstance(table, SharedArray) and straight is not None:
        values, truths = _from_table(positions, table.operand, straight, count), False
    elif isinstance(table, Array) or count <= FEW:
        values, truths = _from_values(positions, trace.lift(table), axis)
    else:
        values, truths = _from_constants(positions, table, axis), table.dtype.kind == "b"
    inner = range(positions.ndim)
    taken = np.moveaxis(values.reshape(positions.shape + other_axes), inner, range(axis, axis + positions.ndim))
    selected = Array(trace, taken.copy())
    return selected.astype(bool) if truths else selected


def _from_values(positions: Array, table: Array, axis: int) -> tuple[NDArray[np.int64], bool]:
    """For each place a row of what is found there, and whether these are booleans."""
    g = table.origin.builder
    columns = np.moveaxis(table.ids, axis, -1).reshape(-1, table.shape[axis]).tolist()
    choosers = [chooser(g, [g.number(v) for v in column]) for column in columns]
    values = [[choose(i) for choose in choosers] for i in positions.ids.ravel().tolist()]
    return np.array(values, np.int64), table.truths


def _from_constants(positions: Array, table: NDArray[Any], axis: int) -> NDArray[np.int64]:
    if table.dtype.kind not in "biuf":
        raise TypeError(f"np.take: a table of real numbers can be part of a kernel, not one of dtype {table.dtype}.")
    count = table.shape[axis]
    columns = table.size // count
    return _from_table(positions, Constants(np.moveaxis(table, axis, 0)), [(k, columns) for k in range(columns)], count)


def _from_table(positions: Array, table: Constants | int, rows: list[tuple[int, int]], count: int) -> NDArray[np.int64]:
    """For each place what is found there in rows of a table, which have a first place and a step."""
    g, sources = positions.origin.builder, [Source(table, first, step, count) for first, step in rows]
    values = [[g.emit(("lookup", source, i)) for source in sources] for i in positions.ids.ravel().tolist()]
    return np.array(values, np.int64)


def chooser(g: Builder, values: list[int]) -> Callable[[int], int]:
    """What gives one of some values for an index: by a tree of comparisons, or by position in memory."""
    if len(values) == 1:
        return lambda index: values[0]
    if len(values) <= FEW:
        return lambda index: _fork(g, index, 0, values, len(values) // 2)
    if any(v > 0 for v in values):
        return lambda index: g.gather(index, *values)
    source = Source(Constants([g.constants[-v] for v in values]), 0, 1, len(values))
    return lambda index: g.emit(("lookup", source, index))


def _fork(g: Builder, index: int, start: int, values: list[int], half: int) -> int:
    """The value at an index from `start` on; false comparisons, such as those of NaN, lead to the first."""
    low, high = values[:half], values[half:]
    low_branch = low[0] if half == 1 else _fork(g, index, start, low, half // 2)
    right = high[0] if len(high) == 1 else _fork(g, index, start + half, high, len(high) // 2)
    return g.select(g.le(g.constant(float(start + half)), index), right, low_branch)
