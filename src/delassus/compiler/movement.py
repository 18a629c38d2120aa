"""Functions that only move elements: NumPy's own, applied to the integers that stand for the values."""

import builtins
import inspect
from typing import Any

import numpy as np

from delassus.compiler.array import Array
from delassus.compiler.handlers import handles
from delassus.compiler.lifting import lift, trace_here
from delassus.compiler.trace import Trace


def _moves(function: Any) -> None:
    first = next(iter(inspect.signature(function).parameters))

    @handles(function)
    def handler(*args: Any, **kwargs: Any) -> Any:
        moved = args[0] if args else kwargs.pop(first)
        arrays, has_truths = _ids(trace_here(moved), moved)
        return _wrap(trace_here(moved), function(arrays, *args[1:], **kwargs), has_truths)


def _ids(trace: Trace, x: Any) -> tuple[Any, bool]:
    """The integers behind an array, or behind each array of a sequence, and whether there are truth values."""
    if isinstance(x, (list, tuple)):
        parts = [_ids(trace, e) for e in x]
        return [ids for ids, _ in parts], builtins.any(has_truths for _, has_truths in parts)
    lifted = trace.lift(x)
    return lifted.ids, lifted.truths


def _wrap(trace: Trace, moved: Any, has_truths: bool) -> Any:
    if isinstance(moved, (list, tuple)):
        return [_wrap(trace, m, has_truths) for m in moved]
    return Array(trace, np.asarray(moved), has_truths)


for _function in (
    np.reshape, np.ravel, np.transpose, np.swapaxes, np.moveaxis, np.expand_dims, np.squeeze, np.broadcast_to,
    np.diag, np.diagonal, np.tril, np.triu, np.flip, np.fliplr, np.flipud, np.roll, np.rot90, np.tile, np.repeat,
    np.take, np.copy, np.stack, np.concatenate, np.vstack, np.hstack, np.dstack, np.column_stack, np.block, np.split,
    np.array_split, np.append, np.delete, np.linalg.diagonal, np.linalg.matrix_transpose, np.matrix_transpose,
):  # fmt: skip
    _moves(_function)


@handles(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Array:
    """Values after the end."""
    a, v = lift(arr, values)
    return Array(a.origin, np.append(a.ids, v.ids, axis), a.truths or v.truths)


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
def zeros_like(a: Any, dtype: Any = None, **_: Any) -> Array:
    """Zeros in the shape of another array."""
    return full_like(a, 0.0)


@handles(np.ones_like)
def ones_like(a: Any, dtype: Any = None, **_: Any) -> Array:
    """Ones in the shape of another array."""
    return full_like(a, 1.0)


@handles(np.empty_like)
def empty_like(a: Any, dtype: Any = None, **_: Any) -> Array:
    """Zeros in the shape of another array: a graph has no uninitialised values."""
    return full_like(a, 0.0)


@handles(np.full_like)
def full_like(a: Any, fill_value: Any, dtype: Any = None, **_: Any) -> Array:
    """One value in the shape of another array."""
    array, value = lift(a, fill_value)
    return Array(array.origin, np.array(np.broadcast_to(value.ids, array.shape)), value.truths)
