"""Remainders and floor quotients as graph operations, with NumPy's signs.

a = n b + r, where n is the quotient a/b without its fraction. As long as |a/b| < 2⁵³ (single precision: 2²⁴), r is a
number of the format, so that one fused multiply-add gives it without rounding. The division may have been rounded up to
an integer; r then has the sign that it must not have, and is smaller than b. So has the remainder of numbers of
different signs, since it takes that of the divisor: one sum with b puts both right, as it does in NumPy. Beyond that
border, where neighboring numbers may be further apart than b, the remainder counts as 0.

Without fused operations, n b is a sum of two floats by Dekker's product, of numbers scaled to where that is exact.
"""

import math

import numpy as np

from delassus.compiler.functions.elementary import split
from delassus.compiler.functions.registry import elementary
from delassus.compiler.graph.graph import ONE, ZERO, Builder
from delassus.compiler.graph.precision import DOUBLE, SINGLE

_SCALES = {DOUBLE: (2.0**500, 2.0**-400, 2.0**600), SINGLE: (2.0**60, 2.0**-40, 2.0**80)}
"""Dividends above and below which products are not exact, and the factor that takes them away from there."""


@elementary(
    np.remainder,
    partials=(lambda g, y, a, b: ONE, lambda g, y, a, b: g.neg(g.emit(("floor_divide", a, b)))),
)
def remainder(g: Builder, a: int, b: int) -> int:
    """What is left of a after whole multiples of b, with the sign of b."""
    _, rest_value, has_wrong_sign = _divide(g, a, b)
    return g.select(has_wrong_sign, g.add(rest_value, b), rest_value)


@elementary(np.floor_divide, partials=())
def floor_divide(g: Builder, a: int, b: int) -> int:
    """The largest integer that is not above a/b; a/0 is infinite, and NaN for infinite a."""
    whole, _, has_wrong_sign = _divide(g, a, b)
    quotient = g.select(has_wrong_sign, g.sub(whole, ONE), whole)
    endless = g.logical_and(g.eq(g.abs(a), g.constant(math.inf)), g.ne(b, ZERO))
    return g.select(endless, g.constant(math.nan), quotient)


def _divide(g: Builder, a: int, b: int) -> tuple[int, int, int]:
    """The quotient without its fraction, what is left, and whether its sign is not that of b."""
    ratio = g.div(a, b)
    small = g.lt(g.abs(a), g.abs(b))
    quotient = g.select(small, ZERO, g.trunc(ratio))
    border = g.constant(2.0 ** (g.precision.digits + 1))
    is_large = g.logical_and(
        g.le(border, g.abs(ratio)), g.logical_and(g.lt(g.abs(a), g.constant(math.inf)), g.ne(b, ZERO))
    )
    rest = g.select(is_large, ZERO, g.select(small, a, _without(g, a, quotient, b)))
    has_wrong_sign = g.logical_and(g.ne(rest, ZERO), g.logical_xor(g.lt(rest, ZERO), g.lt(b, ZERO)))
    return quotient, rest, has_wrong_sign


def _without(g: Builder, a: int, n: int, b: int) -> int:
    """a - n b, if that is a number of the format; |b| ≤ |a|."""
    if g.fma:
        return g.emit(("fnma", n, b, a))
    c = g.constant
    upper, lower, factor = _SCALES[g.precision]
    size = g.abs(a)
    huge, tiny = g.lt(c(upper), size), g.lt(size, c(lower))
    scale = g.select(huge, c(1.0 / factor), g.select(tiny, c(factor), ONE))
    unscale = g.select(huge, c(factor), g.select(tiny, c(1.0 / factor), ONE))
    x, y = g.mul(a, scale), g.mul(b, scale)
    product, n_high, y_high = g.mul(n, y), split(g, n), split(g, y)
    n_low, y_low = g.sub(n, n_high), g.sub(y, y_high)
    crossed = g.add(g.sub(g.mul(n_high, y_high), product), g.mul(n_high, y_low))
    rounding = g.add(g.add(crossed, g.mul(n_low, y_high)), g.mul(n_low, y_low))
    return g.mul(g.sub(g.sub(x, product), rounding), unscale)
