"""Elementary functions as graph operations, so that every back end computes the same bits.

sin and cos: the argument is reduced by the nearest multiple n of π/2, with π/2 split into three parts of which
the first two have 33 bits, so that n·P₁ and n·P₂ are exact for |n| < 2²⁰ (|x| ≤ 1.6e6). The remainder |r| ≤ π/4
goes through two minimax polynomials; the two low bits of n choose between them and the sign. Measured error
below 1 ulp for |x| ≤ 1e6; beyond, the error grows with |x| as the spacing of floats does. From 2⁵⁰ on, where
neighbouring floats are a quarter of a radian apart, the angle counts as 0; ±inf and NaN give NaN.
"""

import math
from typing import Final

from delassus.compiler.graph import Builder

_ROUNDER: Final = 1.5 * 2.0**52
"""Adding it rounds to an integer and leaves that integer's low bits in the low bits of the sum."""

_HALF_PI: Final = (
    float.fromhex("0x1.921fb544p+0"),
    float.fromhex("0x1.0b4611a6p-34"),
    float.fromhex("0x1.3198a2e037073p-69"),
)

_SIN: Final = (
    1.5896795686130045e-10,
    -2.5050758115867168e-08,
    2.7557313691922057e-06,
    -0.0001984126982980782,
    0.008333333333322413,
    -0.16666666666666632,
)
"""sin r = r + r³ P(r²), relative error below 2⁻⁵⁷."""

_COS: Final = (
    -1.1359647807249473e-11,
    2.08757232732872e-09,
    -2.7557314352333056e-07,
    2.4801587289482184e-05,
    -0.0013888888888874125,
    0.0416666666666666,
)
"""cos r = 1 - r²/2 + r⁴ Q(r²), absolute error below 2⁻⁶³."""


def _reduced(g: Builder, x: int) -> tuple[int, int]:
    """x - n·π/2 in [-π/4, π/4], and the float whose low bits are those of n."""
    c = g.constant
    x = g.select(g.lt(g.abs(x), c(2.0**50)), x, g.sub(x, x))
    shifted = g.add(g.mul(x, c(2 / math.pi)), c(_ROUNDER))
    n = g.sub(shifted, c(_ROUNDER))
    p1, p2, p3 = map(c, _HALF_PI)
    r1 = g.sub(x, g.mul(n, p1))
    r2 = g.sub(r1, g.mul(n, p2))
    lost = g.sub(g.sub(r1, r2), g.mul(n, p2))
    return g.add(r2, g.sub(lost, g.mul(n, p3))), shifted


def _polynomial(g: Builder, z: int, coefficients: tuple[float, ...]) -> int:
    """Horner's rule, highest coefficient first."""
    total = g.constant(coefficients[0])
    for coefficient in coefficients[1:]:
        total = g.add(g.mul(total, z), g.constant(coefficient))
    return total


def _sin_cos(g: Builder, x: int) -> tuple[int, int, int]:
    """Sine and cosine of the reduced argument, and the float that holds the quadrant."""
    r, quadrant = _reduced(g, x)
    z = g.mul(r, r)
    sine = g.add(r, g.mul(g.mul(r, z), _polynomial(g, z, _SIN)))
    half = g.mul(z, g.constant(0.5))
    near = g.sub(g.constant(1.0), half)
    lost = g.sub(g.sub(g.constant(1.0), near), half)
    cosine = g.add(near, g.add(lost, g.mul(g.mul(z, z), _polynomial(g, z, _COS))))
    return sine, cosine, quadrant


def sin(g: Builder, x: int) -> int:
    """sin x."""
    sine, cosine, quadrant = _sin_cos(g, x)
    value = g.select(g.bit(quadrant, 0), cosine, sine)
    return g.select(g.bit(quadrant, 1), g.neg(value), value)


def cos(g: Builder, x: int) -> int:
    """cos x."""
    sine, cosine, quadrant = _sin_cos(g, x)
    value = g.select(g.bit(quadrant, 0), sine, cosine)
    return g.select(g.logical_xor(g.bit(quadrant, 0), g.bit(quadrant, 1)), g.neg(value), value)


def minimum(g: Builder, a: int, b: int) -> int:
    """The smaller one, NaN if either is."""
    return g.select(g.ne(a, a), a, g.select(g.lt(a, b), a, b))


def maximum(g: Builder, a: int, b: int) -> int:
    """The larger one, NaN if either is."""
    return g.select(g.ne(a, a), a, g.select(g.lt(b, a), a, b))


def sign(g: Builder, x: int) -> int:
    """1, 0 or -1; NaN stays NaN."""
    return g.select(g.lt(g.constant(0.0), x), g.constant(1.0), g.select(g.lt(x, g.constant(0.0)), g.constant(-1.0), x))
