"""sin, cos and tan as graph operations.

The argument is reduced by the nearest multiple n of π/2, with π/2 split into parts so short that their products with n
are exact: of 33 bits for |n| < 2²⁰ in double precision (|x| ≤ 1.6e6), of 11 bits for |n| < 2¹³ in single precision
(|x| ≤ 1.2e4). All but the last part; it has all the bits of a float. The remainder |r| ≤ π/4 goes through two minimax
polynomials; the two low bits of n choose between them and the sign. Measured error of sin and cos below 1.5 ulp up to
|x| = 1e6 (single: 1.6 up to 1e4); beyond, the error grows with |x| as the spacing of floats does. From 2⁵⁰ (single:
2²¹) on, where neighboring floats are a quarter of a radian apart, the angle counts as 0; ±inf and NaN give NaN.

tan is the quotient of the two. What the remainder and the cosine lost when they were rounded is taken into account in
the sine, so that the errors of sine and division are left. Measured error below 1.7 ulp for |x| ≤ 1e6 (single: 1.8 for
|x| ≤ 1e4).
"""

import math
from typing import Final

import numpy as np

from delassus.compiler.functions.elementary import polynomial
from delassus.compiler.functions.registry import elementary
from delassus.compiler.graph.graph import ONE, Builder
from delassus.compiler.graph.precision import DOUBLE, SINGLE

_HALF_PI: Final = {
    DOUBLE: (
        float.fromhex("0x1.921fb544p+0"),
        float.fromhex("0x1.0b4611a6p-34"),
        float.fromhex("0x1.3198a2e037073p-69"),
    ),
    SINGLE: (
        float.fromhex("0x1.92p+0"),
        float.fromhex("0x1.fb4p-12"),
        float.fromhex("0x1.444p-24"),
        float.fromhex("0x1.68c234p-39"),
    ),
}
"""π/2 as a sum. The remainder is exact until the last but one is subtracted."""

_UNKNOWN: Final = {DOUBLE: 2.0**50, SINGLE: 2.0**21}
"""From where on an angle says nothing."""

_SIN: Final = {
    DOUBLE: (
        1.5896795686130045e-10,
        -2.5050758115867168e-08,
        2.7557313691922057e-06,
        -0.0001984126982980782,
        0.008333333333322413,
        -0.16666666666666632,
    ),
    SINGLE: (-0.00019505145610310137, 0.008332093246281147, -0.16666653752326965),
}
"""sin r = r + r³ P(r²), relative error below 2⁻⁵⁷ and 2⁻²⁷."""

_COS: Final = {
    DOUBLE: (
        -1.1359647807249473e-11,
        2.08757232732872e-09,
        -2.7557314352333056e-07,
        2.4801587289482184e-05,
        -0.0013888888888874125,
        0.0416666666666666,
    ),
    SINGLE: (2.4428207325399853e-05, -0.0013887288514524698, 0.04166664555668831),
}
"""cos r = 1 - r²/2 + r⁴ Q(r²), absolute error below 2⁻⁶³ and 2⁻³²."""


def _reduced(g: Builder, x: int) -> tuple[int, int, int]:
    """x - n·π/2 in [-π/4, π/4] as a float, what that lost by rounding, and the float whose low bits are those of n."""
    c = g.constant
    rounder = c(g.precision.rounder)
    x = g.select(g.lt(g.abs(x), c(_UNKNOWN[g.precision])), x, g.sub(x, x))
    shifted = g.add(g.mul(x, c(2 / math.pi)), rounder)
    n = g.sub(shifted, rounder)
    *first, middle, last = map(c, _HALF_PI[g.precision])
    r1 = x
    for part in first:
        r1 = g.sub(r1, g.mul(n, part))
    r2 = g.sub(r1, g.mul(n, middle))
    rounding = g.sub(g.sub(r1, r2), g.mul(n, middle))
    remainder = g.sub(rounding, g.mul(n, last))
    r = g.add(r2, remainder)
    return r, g.add(g.sub(r2, r), remainder), shifted


def _sin_cos(g: Builder, x: int) -> tuple[int, int, int]:
    """Sine and cosine of the reduced argument, and the float that holds the quadrant."""
    r, _, quadrant = _reduced(g, x)
    z = g.mul(r, r)
    sine = g.add(r, g.mul(g.mul(r, z), polynomial(g, z, _SIN)))
    half = g.mul(z, g.constant(0.5))
    leading = g.sub(g.constant(1.0), half)
    rounding = g.sub(g.sub(g.constant(1.0), leading), half)
    cosine = g.add(leading, g.add(rounding, g.mul(g.mul(z, z), polynomial(g, z, _COS))))
    return sine, cosine, quadrant


@elementary(np.sin, partials=(lambda g, y, x: g.unary("cos", x),))
def sin(g: Builder, x: int) -> int:
    """The sine of x [rad], within 2 ulp."""
    sine, cosine, quadrant = _sin_cos(g, x)
    value = g.select(g.bit(quadrant, 0), cosine, sine)
    return g.select(g.bit(quadrant, 1), g.neg(value), value)


@elementary(np.cos, partials=(lambda g, y, x: g.neg(g.unary("sin", x)),))
def cos(g: Builder, x: int) -> int:
    """The cosine of x [rad], within 2 ulp."""
    sine, cosine, quadrant = _sin_cos(g, x)
    value = g.select(g.bit(quadrant, 0), sine, cosine)
    return g.select(g.logical_xor(g.bit(quadrant, 0), g.bit(quadrant, 1)), g.neg(value), value)


@elementary(np.tan, partials=(lambda g, y, x: g.add(ONE, g.mul(y, y)),))
def tan(g: Builder, x: int) -> int:
    """The tangent of x [rad], within 2 ulp."""
    c = g.constant
    r, remainder, quadrant = _reduced(g, x)
    one, z = c(1.0), g.mul(r, r)
    half = g.mul(z, c(0.5))
    leading = g.sub(one, half)
    rounding = g.sub(g.sub(g.sub(one, leading), half), g.mul(r, remainder))
    correction = g.add(rounding, g.mul(g.mul(z, z), polynomial(g, z, _COS)))
    cosine = g.add(leading, correction)
    # What the cosine lost, times the tangent, has the same effect on the quotient; two digits of it are enough.
    rounding = g.add(g.sub(leading, cosine), correction)
    tangent = g.mul(r, g.add(g.mul(z, c(0.44)), one))
    remainder = g.sub(g.mul(remainder, leading), g.mul(rounding, tangent))
    sine = g.add(r, g.add(g.mul(g.mul(r, z), polynomial(g, z, _SIN)), remainder))
    odd = g.bit(quadrant, 0)
    return g.div(g.select(odd, g.neg(cosine), sine), g.select(odd, sine, cosine))
