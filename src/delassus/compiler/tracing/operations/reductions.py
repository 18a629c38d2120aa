"""Reductions of traced arrays.

Sums run from left to right, so that each addition can take the product before it into a fused multiply-add.
"""

import builtins
import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from delassus.compiler.graph.graph import FALSE, ONE, TRUE, ZERO, Builder
from delassus.compiler.tracing.array import Array
from delassus.compiler.tracing.handlers import HANDLERS, handles
from delassus.compiler.tracing.lifting import floats, lift, truths

Maker = Callable[..., int]


def _reduction(
    function: Any, maker: Callable[[Builder], Maker], start: int | None, prepare: Callable[..., list[Array]]
) -> None:
    @handles(function)
    def handler(a: Any, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False, **kwargs: Any) -> Array:
        if builtins.any(v is not None and v is not np._NoValue for v in kwargs.values()):
            raise TypeError(
                f"np.{function.__name__} on traced values takes axis and keepdims, not {', '.join(kwargs)}."
            )
        (x,) = prepare(a)
        axes = tuple(range(x.ndim)) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, x.ndim)
        remaining_axes = [i for i in range(x.ndim) if i not in axes]
        lengths = (math.prod(x.shape[i] for i in group) for group in (remaining_axes, axes))
        rows = x.ids.transpose(*remaining_axes, *axes).reshape(*lengths)
        if rows.shape[1] == 0 and start is None:
            raise ValueError(f"np.{function.__name__} of no elements has no value.")
        make = maker(x.origin.builder)
        values = [reduce(make, row) if row else start for row in rows.tolist()]
        final = [1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes]
        return Array(x.origin, np.array(values, np.int64).reshape(final).copy(), prepare is truths)  # not a view


_reduction(np.sum, lambda g: g.add, ZERO, floats)
_reduction(np.prod, lambda g: g.mul, ONE, floats)
_reduction(np.min, lambda g: g.minimum, None, floats)
_reduction(np.max, lambda g: g.maximum, None, floats)
_reduction(np.all, lambda g: g.logical_and, TRUE, truths)
_reduction(np.any, lambda g: g.logical_or, FALSE, truths)


def _of_truths(function: Any, same: Any) -> None:
    """A reduction that is another one if it is of booleans."""
    of_numbers = HANDLERS[function]

    @handles(function)
    def handler(a: Any, *args: Any, **kwargs: Any) -> Array:
        (x,) = lift(a)
        result: Array = (HANDLERS[same] if x.truths else of_numbers)(x, *args, **kwargs)
        return result


_of_truths(np.min, np.all)
_of_truths(np.max, np.any)


@handles(np.mean)
def mean(a: Any, axis: Any = None, *, keepdims: bool = False) -> Array:
    """The arithmetic mean."""
    total: Array = HANDLERS[np.sum](a, axis, keepdims=keepdims)
    result: Array = total / (lift(a)[0].size / builtins.max(1, total.size))
    return result


@handles(np.trace)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The sum of a diagonal."""
    (x,) = lift(a)
    result: Array = HANDLERS[np.sum](Array(x.origin, x.ids.diagonal(offset, axis1, axis2), x.truths), -1)
    return result
