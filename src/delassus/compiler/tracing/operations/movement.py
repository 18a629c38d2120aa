"""Functions that only move elements: NumPy's own, applied to indices of values."""

import inspect
from typing import Any

import numpy as np

from delassus.compiler.graph.graph import FALSE, ZERO
from delassus.compiler.tracing.array import Array, Recording
from delassus.compiler.tracing.handlers import HANDLERS, Handler, handles
from delassus.compiler.tracing.lifting import lift, trace_here
from delassus.compiler.tracing.shared import SharedArray
from delassus.compiler.tracing.trace import trace_of

_PLACES = {np.reshape, np.ravel, np.transpose, np.swapaxes, np.moveaxis, np.expand_dims, np.squeeze, np.flip}
"""Functions that neither repeat elements nor add any."""


def moves(function: Any) -> Handler:
    """Make a function that only moves elements the traced form of itself."""

    @handles(function)
    def handler(*args: Any, dtype: Any = None, **kwargs: Any) -> Any:
        array = args[0] if args else kwargs.pop(next(iter(inspect.signature(function).parameters)))
        if any(isinstance(option, str) and option in ("A", "K") for option in (*args[1:], *kwargs.values())):
            raise TypeError(f"np.{function.__name__}: traced values have no order in memory, only 'C' and 'F' apply.")
        if isinstance(array, SharedArray) and function in _PLACES:
            return array.select_elements(function(array.places, *args[1:], **kwargs))
        trace = trace_here(array)
        kinds: set[bool] = set()
        lifted = _lift(trace, array, kinds)
        result = _wrap(trace, function(_ids(lifted, kinds == {True, False}), *args[1:], **kwargs), kinds == {True})
        return result if dtype is None else result.astype(dtype)

    return handler


def _lift(trace: Recording, x: Any, kinds: set[bool]) -> Any:
    """An array, or each array of a sequence, as a traced one; notes which kinds there are, booleans or not."""
    if isinstance(x, (list, tuple)):
        return [_lift(trace, e, kinds) for e in x]
    lifted = trace.lift(x)
    kinds.add(lifted.truths)
    return lifted


def _ids(x: Any, as_floats: bool) -> Any:
    """The integers behind a nest of arrays; `as_floats` if they meet floats."""
    if isinstance(x, list):
        return [_ids(e, as_floats) for e in x]
    return (x.astype(float) if as_floats else x).ids


def _wrap(trace: Recording, result: Any, truths: bool) -> Any:
    if isinstance(result, (list, tuple)):
        return [_wrap(trace, m, truths) for m in result]
    ids = np.asarray(result)
    if truths and ZERO in ids:  # the gaps that tril and its like leave
        ids = np.where(ids == ZERO, FALSE, ids)
    return Array(trace, ids, truths)


for _function in (
    np.reshape, np.ravel, np.transpose, np.swapaxes, np.moveaxis, np.expand_dims, np.squeeze, np.broadcast_to,
    np.diag, np.diagonal, np.tril, np.triu, np.flip, np.fliplr, np.flipud, np.roll, np.rot90, np.tile, np.repeat,
    np.copy, np.stack, np.concatenate, np.vstack, np.hstack, np.dstack, np.column_stack, np.block, np.split,
    np.array_split, np.delete, np.linalg.diagonal, np.linalg.matrix_transpose, np.matrix_transpose,
):  # fmt: skip
    moves(_function)


@handles(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Array:
    """Values after the end."""
    parts = lift(arr, values)
    result: Array = HANDLERS[np.concatenate]([x.ravel() for x in parts] if axis is None else parts, axis or 0)
    return result


@handles(np.atleast_1d)
def atleast_1d(x: Any) -> Array:
    """With at least one axis."""
    (a,) = lift(x)
    return Array(a.origin, np.atleast_1d(a.ids), a.truths)


@handles(np.atleast_2d)
def atleast_2d(x: Any) -> Array:
    """With at least two axes."""
    (a,) = lift(x)
    return Array(a.origin, np.atleast_2d(a.ids), a.truths)


@handles(np.broadcast_arrays)
def broadcast_arrays(*arrays: Any) -> list[Array]:
    """The arrays, each in the shape they broadcast to."""
    lifted = lift(*arrays)
    return [
        Array(a.origin, np.array(i), a.truths)
        for a, i in zip(lifted, np.broadcast_arrays(*[a.ids for a in lifted]), strict=True)
    ]


@handles(np.shape)
def shape(a: Any) -> tuple[int, ...]:
    """Lengths of the axes."""
    return lift(a)[0].shape


@handles(np.ndim)
def ndim(a: Any) -> int:
    """Number of axes."""
    return lift(a)[0].ndim


@handles(np.size)
def size(a: Any, axis: int | None = None) -> int:
    """Number of elements, or length of an axis."""
    return np.size(lift(a)[0].ids, axis)


@handles(np.zeros_like)
def zeros_like(a: Any, dtype: Any = None, *, shape: Any = None) -> Any:
    """Zeros in the shape of another array."""
    return full_like(a, 0.0, dtype, shape=shape)


@handles(np.ones_like)
def ones_like(a: Any, dtype: Any = None, *, shape: Any = None) -> Any:
    """Ones in the shape of another array."""
    return full_like(a, 1.0, dtype, shape=shape)


@handles(np.empty_like)
def empty_like(a: Any, dtype: Any = None, *, shape: Any = None) -> Any:
    """Zeros in the shape of another array: a graph has no uninitialised values."""
    return full_like(a, 0.0, dtype, shape=shape)


@handles(np.full_like)
def full_like(a: Any, fill_value: Any, dtype: Any = None, *, shape: Any = None) -> Any:
    """One value in the shape of another array; plain if it is of another kind than floats and booleans."""
    array, value = lift(a, fill_value)
    shape = array.shape if shape is None else shape
    dtype = getattr(a, "dtype", array.dtype) if dtype is None else np.dtype(dtype)
    if trace_of(fill_value) is None and dtype not in (np.float64, np.bool_):
        return np.full(shape, fill_value, dtype)
    value = value if value.dtype == dtype else value.astype(dtype)
    return Array(array.origin, np.array(np.broadcast_to(value.ids, shape)), value.truths)
