"""Functions of elements on traced arrays: each element makes a value."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from delassus.compiler.array import Array
from delassus.compiler.graph import ONE, Builder
from delassus.compiler.handlers import HANDLERS, handles
from delassus.compiler.lifting import floats, trace_here, truths
from delassus.compiler.trace import trace_of

Maker = Callable[..., int]


def _elementwise(
    function: Any,
    maker: Callable[[Builder], Maker],
    prepare: Callable[..., list[Array]] = floats,
    gives_truths: bool = False,
) -> None:
    @handles(function)
    def handler(*arguments: Any) -> Array:
        arrays = prepare(*arguments)
        trace = arrays[0].origin
        return trace.map(maker(trace.builder), *arrays, truths=gives_truths)


def _compares(function: Any, maker: Callable[[Builder], Maker], prepare: Callable[..., list[Array]] = floats) -> None:
    _elementwise(function, maker, prepare, True)


def _swapped(make: Maker) -> Maker:
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
_elementwise(np.sin, lambda g: lambda a: g.unary("sin", a))
_elementwise(np.cos, lambda g: lambda a: g.unary("cos", a))
_elementwise(np.sign, lambda g: lambda a: g.unary("sign", a))
_elementwise(np.deg2rad, lambda g: lambda a: g.mul(a, g.constant(math.pi / 180)))
_elementwise(np.radians, lambda g: lambda a: g.mul(a, g.constant(math.pi / 180)))
_elementwise(np.rad2deg, lambda g: lambda a: g.mul(a, g.constant(180 / math.pi)))
_elementwise(np.degrees, lambda g: lambda a: g.mul(a, g.constant(180 / math.pi)))
_elementwise(np.minimum, lambda g: g.minimum)
_elementwise(np.maximum, lambda g: g.maximum)
_compares(np.less, lambda g: g.lt)
_compares(np.less_equal, lambda g: g.le)
_compares(np.greater, lambda g: _swapped(g.lt))
_compares(np.greater_equal, lambda g: _swapped(g.le))
_compares(np.equal, lambda g: g.eq)
_compares(np.not_equal, lambda g: g.ne)
_compares(np.isnan, lambda g: lambda a: g.ne(a, a))
_compares(np.isfinite, lambda g: lambda a: g.lt(g.abs(a), g.constant(math.inf)))
_compares(np.isinf, lambda g: lambda a: g.eq(g.abs(a), g.constant(math.inf)))
for _and, _or, _xor, _not in (
    (np.logical_and, np.logical_or, np.logical_xor, np.logical_not),
    (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert),
):
    _compares(_and, lambda g: g.logical_and, truths)
    _compares(_or, lambda g: g.logical_or, truths)
    _compares(_xor, lambda g: g.logical_xor, truths)
    _compares(_not, lambda g: g.logical_not, truths)


@handles(np.power, np.float_power, np.pow)
def power(base: Any, exponent: Any) -> Array:
    """Integer and half-integer powers, by multiplication and √; the exponent must be a plain number."""
    if trace_of(exponent) is not None:
        raise TypeError("np.power met a traced exponent: only fixed integer and half-integer exponents compile.")
    (x,) = floats(base)
    builder = x.origin.builder
    exponents = np.asarray(exponent, float)
    if not np.all(np.isfinite(exponents) & (2 * exponents == np.rint(2 * exponents)) & (abs(exponents) <= 64)):
        raise TypeError(
            f"np.power met traced values and the exponent {exponent}: only integer and half-integer exponents "
            "between -64 and 64 compile, as products and square roots."
        )

    def raised(a: int, n: int) -> int:
        """a to the power n >= 1, by repeated squaring."""
        if n == 1:
            return a
        half = raised(a, n // 2)
        square = builder.mul(half, half)
        return builder.mul(square, a) if n % 2 else square

    def make(a: int, p: int) -> int:
        exponent = builder.constants[-p]
        whole, half = int(abs(exponent)), abs(exponent) % 1 != 0
        result = raised(a, whole) if whole else ONE
        if half:
            result = builder.mul(result, builder.sqrt(a))
        return builder.div(ONE, result) if exponent < 0 else result

    return x.origin.map(make, x, x.origin.lift(exponents))


@handles(np.where)
def where(condition: Any, *choices: Any) -> Array:
    """`a` where the condition holds, else `b`."""
    if len(choices) != 2:
        raise TypeError("np.where met traced values with one argument: which indices it finds is known at run time.")
    trace = trace_here(condition, *choices)
    a, b = (trace.lift(x) for x in choices)
    if a.dtype != b.dtype:
        a, b = floats(a, b)
    (c,) = truths(trace.lift(condition))
    return trace.map(trace.builder.select, c, a, b, truths=a.truths)


@handles(np.clip)
def clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Array:
    """A value limited to an interval; None leaves that side open."""
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    (result,) = floats(a)
    if low is not None:
        result = HANDLERS[np.maximum](result, low)
    if high is not None:
        result = HANDLERS[np.minimum](result, high)
    return result
