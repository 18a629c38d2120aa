"""Elementwise functions on traced arrays.

Booleans are 1.0 and 0.0 in arithmetic, except among themselves, where NumPy's + and * are "or" and "and".
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from delassus.compiler.functions.registry import FUNCTIONS
from delassus.compiler.graph.graph import ONE, Builder
from delassus.compiler.tracing.array import Array
from delassus.compiler.tracing.handlers import HANDLERS, handles
from delassus.compiler.tracing.lifting import floats, lift, trace_here, truths
from delassus.compiler.tracing.trace import trace_of

Maker = Callable[..., int]


def _elementwise(
    function: Any,
    maker: Callable[[Builder], Maker],
    prepare: Callable[..., list[Array]] = floats,
    gives_truths: bool = False,
) -> None:
    def handler(*arguments: Any) -> Array:
        if len(arguments) != function.nin:
            raise TypeError(f"np.{function.__name__} takes {function.nin} argument(s), got {len(arguments)}.")
        arrays = prepare(*arguments)
        trace = arrays[0].origin
        return trace.map(maker(trace.builder), *arrays, truths=gives_truths)

    handler.__qualname__ = f"np.{function.__name__}"  # the name in Python's own messages about arguments
    handles(function)(handler)


def _compares(function: Any, maker: Callable[[Builder], Maker], prepare: Callable[..., list[Array]] = floats) -> None:
    _elementwise(function, maker, prepare, True)


def _of_truths(function: Any, maker: Callable[[Builder], Maker] | None) -> None:
    """What a function of numbers does if all of its arguments are booleans; None if it is not defined."""
    of_numbers = HANDLERS[function]

    def handler(*arguments: Any) -> Array:
        arrays = lift(*arguments)
        if not all(a.truths for a in arrays):
            result: Array = of_numbers(*arrays)
            return result
        if maker is None:
            raise TypeError(f"np.{function.__name__} of booleans is not defined: use ~ or ^, or x.astype(float).")
        return arrays[0].origin.map(maker(arrays[0].origin.builder), *arrays, truths=True)

    handler.__qualname__ = of_numbers.__qualname__
    handles(function)(handler)


def _only_truths(*arguments: Any) -> list[Array]:
    arrays = lift(*arguments)
    if not all(a.truths for a in arrays):
        raise TypeError("& | ^ ~ work on booleans, not on numbers: compare first, such as x != 0.")
    return arrays


def _swap_arguments(make: Maker) -> Maker:
    return lambda a, b: make(b, a)


_elementwise(np.add, lambda g: g.add)
_elementwise(np.subtract, lambda g: g.sub)
_elementwise(np.multiply, lambda g: g.mul)
_elementwise(np.divide, lambda g: g.div)
_elementwise(np.negative, lambda g: g.neg)
_elementwise(np.positive, lambda g: lambda a: a)
_elementwise(np.conjugate, lambda g: lambda a: a)
_elementwise(np.absolute, lambda g: g.abs)
_elementwise(np.fabs, lambda g: g.abs)
_elementwise(np.square, lambda g: lambda a: g.mul(a, a))
_elementwise(np.reciprocal, lambda g: lambda a: g.div(ONE, a))
_elementwise(np.sqrt, lambda g: g.sqrt)
_elementwise(np.floor, lambda g: g.floor)
_elementwise(np.ceil, lambda g: g.ceil)
_elementwise(np.rint, lambda g: g.rint)
_elementwise(np.trunc, lambda g: g.trunc)
for _function in FUNCTIONS.values():
    if _function.numpy is not None:
        _elementwise(_function.numpy, partial(partial, _function.build))
_elementwise(np.deg2rad, lambda g: lambda a: g.mul(a, g.constant(math.pi / 180)))
_elementwise(np.radians, lambda g: lambda a: g.mul(a, g.constant(math.pi / 180)))
_elementwise(np.rad2deg, lambda g: lambda a: g.mul(a, g.constant(180 / math.pi)))
_elementwise(np.degrees, lambda g: lambda a: g.mul(a, g.constant(180 / math.pi)))
_compares(np.less, lambda g: g.lt)
_compares(np.less_equal, lambda g: g.le)
_compares(np.greater, lambda g: _swap_arguments(g.lt))
_compares(np.greater_equal, lambda g: _swap_arguments(g.le))
_compares(np.equal, lambda g: g.eq)
_compares(np.not_equal, lambda g: g.ne)
_compares(np.isnan, lambda g: lambda a: g.ne(a, a))
_compares(np.isfinite, lambda g: lambda a: g.lt(g.abs(a), g.constant(math.inf)))
_compares(np.isinf, lambda g: lambda a: g.eq(g.abs(a), g.constant(math.inf)))
for _and, _or, _xor, _not, _prepare in (
    (np.logical_and, np.logical_or, np.logical_xor, np.logical_not, truths),
    (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, _only_truths),
):
    _compares(_and, lambda g: g.logical_and, _prepare)
    _compares(_or, lambda g: g.logical_or, _prepare)
    _compares(_xor, lambda g: g.logical_xor, _prepare)
    _compares(_not, lambda g: g.logical_not, _prepare)
_of_truths(np.add, lambda g: g.logical_or)
_of_truths(np.maximum, lambda g: g.logical_or)
_of_truths(np.multiply, lambda g: g.logical_and)
_of_truths(np.minimum, lambda g: g.logical_and)
_of_truths(np.absolute, lambda g: lambda a: a)
for _undefined in (np.subtract, np.negative, np.positive, np.sign, np.reciprocal):
    _of_truths(_undefined, None)


@handles(np.power, np.float_power, np.pow)
def power(base: Any, exponent: Any) -> Array:
    """A real base to a real exponent."""
    for argument in (base, exponent):
        if trace_of(argument) is None and np.asarray(argument).dtype.kind not in "biuf":
            raise TypeError(f"np.power met traced values and {argument!r}: base and exponent must be real numbers.")
    x, y = floats(base, exponent)
    return x.origin.map(partial(FUNCTIONS["power"].build, x.origin.builder), x, y)


@handles(np.where)
def where(condition: Any, *choices: Any) -> Array:
    """`a` where the condition holds, else `b`."""
    if len(choices) != 2:
        raise TypeError(
            "np.where met traced values with one argument: the number of indices would depend on them. Pass three "
            "arguments."
        )
    trace = trace_here(condition, *choices)
    a, b = (trace.lift(x) for x in choices)
    if a.truths != b.truths:
        a, b = floats(a, b)
    (c,) = truths(trace.lift(condition))
    return trace.map(trace.builder.select, c, a, b, truths=a.truths)


@handles(np.clip)
def clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Array:
    """A value limited to an interval; None leaves that side open."""
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    result: Array = trace_here(a, low, high).lift(a).astype(float)
    if low is not None:
        result = HANDLERS[np.maximum](result, low)
    if high is not None:
        result = HANDLERS[np.minimum](result, high)
    return result
