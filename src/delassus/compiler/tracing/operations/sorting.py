"""`sort`, `argsort`, `argmin` and `argmax` of short traced arrays.

A batch cannot branch, so that elements go through a sorting network, Batcher's, whose comparisons do not depend on what
came out of others: n (log₂ n)²/4 of them, 19 for 8 elements and 63 for 16. What nobody uses of the result costs
nothing: the k smallest take less than all. As in NumPy, NaN is last, and the first NaN is the extreme one.

Positions are traced numbers, to be used with `np.take`. Equal elements keep their order.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from delassus.compiler.graph.graph import FALSE, Builder
from delassus.compiler.tracing.array import Array, Ids
from delassus.compiler.tracing.handlers import handles
from delassus.compiler.tracing.lifting import floats, lift

Order = Callable[[Builder, list[int]], list[int]]


@handles(np.sort)
def sort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Array:
    """The elements along an axis, the smallest first."""
    (x,) = lift(a)
    if x.truths:
        return sort(x.astype(float), axis).astype(bool)
    return _along("sort", _sorted, x, axis, order)


@handles(np.argsort)
def argsort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Array:
    """Where the elements are that `sort` gives, in its order; of equal ones, the first comes first."""
    (x,) = floats(a)
    return _along("argsort", _positions, x, axis, order)


@handles(np.argmin)
def argmin(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Where the smallest element is, the first of several; that of the first NaN, if there is one."""
    return _extreme(a, axis, keepdims, lambda g, x, best: g.le(best, x))


@handles(np.argmax)
def argmax(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Where the largest element is, the first of several; that of the first NaN, if there is one."""
    return _extreme(a, axis, keepdims, lambda g, x, best: g.le(x, best))


def network(n: int) -> Iterator[tuple[int, int]]:
    """Pairs of places i < j: if the elements of each pair are put in order, one pair after the other, all are."""
    top = 1 << max(0, n - 1).bit_length() - 1 if n > 1 else 0
    p = top
    while p:
        q, r, d = top, 0, p
        while True:
            yield from ((i, i + d) for i in range(n - d) if i & p == r)
            if q == p:
                break
            q, r, d = q // 2, p, q - p
        p //= 2


def _sorted(g: Builder, row: list[int]) -> list[int]:
    values = list(row)
    for i, j in network(len(row)):
        a, b = values[i], values[j]
        swap = g.logical_and(g.logical_not(g.le(a, b)), g.eq(b, b))  # a > b, or a is NaN and b is not
        values[i], values[j] = g.select(swap, b, a), g.select(swap, a, b)
    return values


def _positions(g: Builder, row: list[int]) -> list[int]:
    """Numbers are sorted with their places; NaN as infinity, with a place behind all others."""
    count, infinity = g.constant(float(len(row))), g.constant(math.inf)
    unknown = [g.ne(x, x) for x in row]
    values = [g.select(u, infinity, x) for u, x in zip(unknown, row, strict=True)]
    positions = [g.constant(float(k)) for k in range(len(row))]
    positions = [g.select(u, g.add(position, count), position) for u, position in zip(unknown, positions, strict=True)]
    for i, j in network(len(row)):
        a, b, p, q = values[i], values[j], positions[i], positions[j]
        swap = g.logical_or(g.lt(b, a), g.logical_and(g.eq(a, b), g.lt(q, p)))
        values[i], values[j] = g.select(swap, b, a), g.select(swap, a, b)
        positions[i], positions[j] = g.select(swap, q, p), g.select(swap, p, q)
    return [g.select(g.le(count, p), g.sub(p, count), p) for p in positions]


def _along(name: str, arrange: Order, x: Array, axis: int | None, order: Any) -> Array:
    """The rows along an axis, each arranged anew; all elements as one row if the axis is None."""
    if order is not None:
        raise TypeError(f"np.{name} on traced values takes no order: they have no fields.")
    if axis is None:
        x, axis = x.ravel(), 0
    (axis,) = np.lib.array_utils.normalize_axis_tuple(axis, x.ndim)
    rows = np.moveaxis(x.ids, axis, -1)
    arranged = [arrange(x.origin.builder, row) for row in rows.reshape(-1, rows.shape[-1]).tolist()]
    ids: Ids = np.array(arranged, np.int64).reshape(rows.shape)
    return Array(x.origin, np.moveaxis(ids, -1, axis).copy())


def _extreme(a: Any, axis: int | None, keepdims: bool, stays: Callable[[Builder, int, int], int]) -> Array:
    """Positions of extremes; `stays` tells whether the best one so far is not worse than another element."""
    (x,) = floats(a)
    axes = tuple(range(x.ndim)) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, x.ndim)
    remaining_axes = [n for n in range(x.ndim) if n not in axes]
    length = math.prod(x.shape[n] for n in axes)
    if length == 0:
        raise ValueError("argmin and argmax of no elements are not defined.")
    g, results = x.origin.builder, []
    for row in x.ids.transpose(*remaining_axes, *axes).reshape(-1, length).tolist():
        best, position = row[0], g.constant(0.0)
        for k, other in enumerate(row[1:], 1):
            better = g.logical_and(g.logical_not(stays(g, other, best)), g.eq(best, best))
            if better != FALSE:
                best, position = g.select(better, other, best), g.select(better, g.constant(float(k)), position)
        results.append(position)
    final = [1 if n in axes else size for n, size in enumerate(x.shape) if keepdims or n not in axes]
    return Array(x.origin, np.array(results, np.int64).reshape(final))
