"""exp, expm1, sinh, cosh and tanh as graph operations.

x = n·ln 2 + r with an integer n and |r| ≤ ln 2 / 2. ln 2 is split into a part whose product with n is exact (of 41
bits, in single precision of 15) and the rest. eʳ = 1 + r + r² P(r), and 2ⁿ goes into the bits of the exponent. eˣ - 1
is 2ⁿ (eʳ - 1 + d) with d = 1 - 2⁻ⁿ, where d + r is the one sum that loses digits, and what it loses is added again;
n = 0 is no special case.

sinh, cosh and tanh are made of exponentials; sinh and tanh are polynomials where these would cancel. Results that are
subnormal are zero, those beyond the largest float are infinite. Measured error: exp below 0.7 ulp, expm1 and cosh
below 1.2, tanh below 1.4, sinh below 1.6; in single precision exp below 0.8 and expm1 below 1.3.
"""

import math
from typing import Final

import numpy as np

from delassus.compiler.functions.elementary import polynomial
from delassus.compiler.functions.registry import elementary
from delassus.compiler.graph.graph import ONE, Builder
from delassus.compiler.graph.precision import DOUBLE, SINGLE, Precision

_LN2: Final = {
    DOUBLE: (float.fromhex("0x1.62e42fefa4p-1"), float.fromhex("-0x1.8432a1b0e2634p-43")),
    SINGLE: (float.fromhex("0x1.62e4p-1"), float.fromhex("0x1.7f7d1cp-20")),
}

_EXP: Final = {
    DOUBLE: (
        2.0921782976972884e-09,
        2.5105221209546068e-08,
        2.7557252378838504e-07,
        2.7557255389979325e-06,
        2.480158734785152e-05,
        0.00019841269874828804,
        0.0013888888888874198,
        0.008333333333326132,
        0.041666666666666685,
        0.1666666666666667,
        0.5,
    ),
    SINGLE: (0.0013920183992013335, 0.008366917259991169, 0.041666608303785324, 0.16666540503501892, 0.5),
}
"""eʳ = 1 + r + r² P(r) for |r| ≤ ln 2 / 2; the error of r P(r) is below 2⁻⁶⁰ and 2⁻²⁶."""

_SINH: Final = {
    DOUBLE: (
        7.759312324344471e-13,
        1.6057240336600808e-10,
        2.50521233986246e-08,
        2.7557319155336375e-06,
        0.00019841269841437684,
        0.008333333333333139,
        0.16666666666666669,
    ),
    SINGLE: (2.7822131869470468e-06, 0.00019842895562760532, 0.00833331048488617, 0.1666666716337204),
}
"""sinh x = x + x³ P(x²) for |x| ≤ 1, relative error below 2⁻⁶³ and 2⁻³¹."""

_TANH: Final = {
    DOUBLE: (
        6.05563834411099e-06,
        -3.0217973157461643e-05,
        9.158980426192361e-05,
        -0.00023703012018282035,
        0.0005894586211606473,
        -0.001455727616357407,
        0.0035921142712164555,
        -0.008863234341495295,
        0.021869488470653595,
        -0.05396825396613441,
        0.1333333333332989,
        -0.33333333333333315,
    ),
    SINGLE: (
        -0.005692296661436558,
        0.02062816731631756,
        -0.05373651534318924,
        0.13331405818462372,
        -0.3333328068256378,
    ),
}
"""tanh x = x + x³ P(x²) for |x| ≤ 5/8, relative error below 2⁻⁶¹ and 2⁻²⁷."""

_LARGEST: Final = {DOUBLE: float.fromhex("0x1.62e42fefa39efp+9"), SINGLE: float.fromhex("0x1.62e42ep+6")}
"""The largest number with a finite exponential."""

_SMALLEST: Final = {DOUBLE: float.fromhex("-0x1.6232bdd7abcd2p+9"), SINGLE: float.fromhex("-0x1.5d589ep+6")}
"""The smallest number whose exponential is not subnormal."""

_LARGEST_HYPERBOLIC: Final = {DOUBLE: float.fromhex("0x1.633ce8fb9f87dp+9"), SINGLE: float.fromhex("0x1.65a9f8p+6")}
"""The largest number with a finite hyperbolic sine and cosine."""

_NOTHING_BELOW: Final = {DOUBLE: -40.0, SINGLE: -20.0}
"""A number whose exponential is nothing beside 1."""

_ONE_FROM: Final = {DOUBLE: 22.0, SINGLE: 11.0}
"""A number from which on the hyperbolic tangent is 1."""


@elementary(np.exp, partials=(lambda g, y, x: y,))
def exp(g: Builder, x: int) -> int:
    """The exponential function eˣ, within 2 ulp."""
    c = g.constant
    high, low, n = _reduced(g, x)
    power = g.scale(exponential(g, high, low, c(1.0)), n)
    inside = g.select(g.lt(x, c(_SMALLEST[g.precision])), c(0.0), power)
    return _limited(g, x, inside, _LARGEST)


@elementary(np.expm1, partials=(lambda g, y, x: g.unary("exp", x),))
def expm1(g: Builder, x: int) -> int:
    """eˣ - 1, to all digits where x is small."""
    c = g.constant
    one = c(1.0)
    high, low, n = _reduced(g, x)
    # From n = 60 on, 2⁻ⁿ is nothing, and for the largest n it is no normal number.
    shift = g.select(g.lt(n, c(60.0)), g.sub(one, g.scale(one, g.neg(n))), one)
    power = g.scale(exponential(g, high, low, shift), n)
    inside = g.select(g.lt(x, c(_NOTHING_BELOW[g.precision])), c(-1.0), power)
    return _limited(g, x, inside, _LARGEST)


@elementary(np.sinh, partials=(lambda g, y, x: g.unary("cosh", x),))
def sinh(g: Builder, x: int) -> int:
    """The hyperbolic sine: h - 1/(4h), where h is half of e to the power |x|, and a polynomial up to 1."""
    c, size = g.constant, g.abs(x)
    half = _half_exp(g, size)
    large_branch = _limited(g, size, g.sub(half, g.div(c(0.25), half)), _LARGEST_HYPERBOLIC)
    return _odd(g, x, size, 1.0, _SINH, large_branch)


@elementary(np.cosh, partials=(lambda g, y, x: g.unary("sinh", x),))
def cosh(g: Builder, x: int) -> int:
    """The hyperbolic cosine: h + 1/(4h), where h is half of e to the power |x|."""
    size = g.abs(x)
    half = _half_exp(g, size)
    return _limited(g, size, g.add(half, g.div(g.constant(0.25), half)), _LARGEST_HYPERBOLIC)


def _inverse_square(g: Builder, x: int) -> int:
    return g.div(ONE, g.mul(x, x))


@elementary(np.tanh, partials=(lambda g, y, x: _inverse_square(g, g.unary("cosh", x)),))
def tanh(g: Builder, x: int) -> int:
    """The hyperbolic tangent: 1 - 2/(e²ˣ + 1) from x = 5/8 on, and a polynomial below."""
    c, size, one_from = g.constant, g.abs(x), _ONE_FROM[g.precision]
    high, low, n = _reduced(g, g.select(g.lt(size, c(one_from)), g.add(size, size), c(2.0 * one_from)))
    power = g.scale(exponential(g, high, low, c(1.0)), n)
    large_branch = g.sub(c(1.0), g.div(c(2.0), g.add(power, c(1.0))))
    return g.select(g.ne(x, x), x, _odd(g, x, size, 0.625, _TANH, large_branch))


def exponential(g: Builder, high: int, low: int, shift: int) -> int:
    """eʳ - 1 + shift for r = high - low, |r| ≤ ln 2 / 2 and low much smaller; the shift is zero or larger than r."""
    total = g.add(shift, high)
    rounding = g.sub(g.sub(high, g.sub(total, shift)), low)
    r = g.sub(high, low)
    return g.add(total, g.add(rounding, g.mul(g.mul(r, r), polynomial(g, r, _EXP))))


def _reduced(g: Builder, x: int) -> tuple[int, int, int]:
    """x - n·ln 2 as a difference of two floats, and n."""
    c, rounder = g.constant, g.constant(g.precision.rounder)
    n = g.sub(g.add(g.mul(x, c(1 / math.log(2.0))), rounder), rounder)
    ln2, ln2_rest = map(c, _LN2[g.precision])
    return g.sub(x, g.mul(n, ln2)), g.mul(n, ln2_rest), n


def _half_exp(g: Builder, x: int) -> int:
    """Half of eˣ for x >= 0, finite a little longer than eˣ."""
    high, low, n = _reduced(g, x)
    return g.scale(exponential(g, high, low, g.constant(1.0)), g.sub(n, g.constant(1.0)))


def _odd(g: Builder, x: int, size: int, border: float, table: dict[Precision, tuple[float, ...]], far: int) -> int:
    """x + x³ P(x²) up to a border, beyond it a value given for |x|."""
    z = g.mul(x, x)
    near = g.add(x, g.mul(g.mul(x, z), polynomial(g, z, table)))
    return g.select(g.lt(size, g.constant(border)), near, g.select(g.lt(x, g.constant(0.0)), g.neg(far), far))


def _limited(g: Builder, x: int, value: int, largest: dict[Precision, float]) -> int:
    """The value up to the largest x, infinity beyond, NaN for NaN."""
    return g.select(g.le(x, g.constant(largest[g.precision])), value, g.add(x, g.constant(math.inf)))
