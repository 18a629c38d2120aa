"""Elementary functions as graph operations, so that every back end computes the same bits.

sin and cos: the argument is reduced by the nearest multiple n of π/2, with π/2 split into three parts of which
the first two have 33 bits, so that n·P₁ and n·P₂ are exact for |n| < 2²⁰ (|x| ≤ 1.6e6). The remainder |r| ≤ π/4
goes through two minimax polynomials; the two low bits of n choose between them and the sign. Measured error
below 1.5 ulp for |x| ≤ 1e6; beyond, the error grows with |x| as the spacing of floats does. From 2⁵⁰ on, where
neighbouring floats are a quarter of a radian apart, the angle counts as 0; ±inf and NaN give NaN.

arctan and arctan2: the smaller of |x|, |y| over the larger is the tangent of an angle up to π/4. From 3/8 on it is
measured from arctan 1/2 instead, by (n - d/2) / (d + n/2), where the difference is exact: one division in all, and
a polynomial for tangents up to 3/8. The multiples of π/2 and arctan 1/2 that complete the angle have exact sums,
and what they lack is added before they are. Measured error below 1.5 ulp everywhere. The sign of zero counts for
nothing: a zero of either sign is +0, so arctan2(±0, x) is 0 for x = ±0 and x > 0, and +π for x < 0.
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

_ARCTAN: Final = (
    -0.02085181574428841,
    0.04045682604539764,
    -0.0512321340945839,
    0.058645062415424255,
    -0.0666514363363617,
    0.0769222050926079,
    -0.09090905804139941,
    0.11111111032926199,
    -0.14285714284631157,
    0.19999999999992504,
    -0.33333333333333315,
)
"""arctan t = t + t³ P(t²) for |t| ≤ 3/8, relative error below 2⁻⁶⁰."""

_PI_PARTS: Final = (math.pi, float.fromhex("0x1.1a62633145c07p-53"))
_ARCTAN_HALF: Final = (float.fromhex("0x1.dac670561bb40p-2"), float.fromhex("0x1.ed15bf9117b2fp-51"))
"""π and arctan 1/2 as sums of two floats; the first ones are multiples of 2⁻⁴⁹, so that their sums are exact."""


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


def arctan(g: Builder, x: int) -> int:
    """The angle in [-π/2, π/2] whose tangent is x."""
    one, size = g.constant(1.0), g.abs(x)
    steep = g.lt(one, size)
    smaller, larger = g.select(steep, one, size), g.select(steep, size, one)
    angle = _first_half_turn(g, smaller, larger, one, steep, g.constant(False))
    return g.select(g.lt(x, g.constant(0.0)), g.neg(angle), angle)


def arctan2(g: Builder, y: int, x: int) -> int:
    """The angle in [-π, π] of the point (x, y)."""
    c = g.constant
    width, height = g.abs(x), g.abs(y)
    steep = g.lt(width, height)
    smaller, larger = g.select(steep, width, height), g.select(steep, height, width)
    # ∞/∞ is a diagonal, 0/0 the angle 0.
    both_infinite = g.logical_and(g.eq(smaller, c(math.inf)), g.eq(larger, c(math.inf)))
    smaller = g.select(both_infinite, c(1.0), smaller)
    larger = g.select(both_infinite, c(1.0), g.select(g.eq(larger, c(0.0)), c(1.0), larger))
    # Away from the ends of the exponents, so that sums do not overflow, nor differences count as zero.
    scale = g.select(g.lt(larger, c(1.0)), c(2.0**60), c(2.0**-60))
    angle = _first_half_turn(g, smaller, larger, scale, steep, g.lt(x, c(0.0)))
    return g.select(g.lt(y, c(0.0)), g.neg(angle), angle)


def _first_half_turn(g: Builder, smaller: int, larger: int, scale: int, steep: int, left: int) -> int:
    """The angle in [0, π] of a point with y >= 0.

    The two coordinates come without sign and by size; `steep` if y is the larger one, `left` if x < 0. `scale` is a
    power of two that makes both of medium size if they are of the same size.
    """
    c = g.constant
    shifted = g.lt(g.mul(larger, c(0.375)), smaller)
    half_scale = g.mul(scale, c(0.5))
    opposite = g.select(shifted, g.sub(g.mul(smaller, scale), g.mul(larger, half_scale)), smaller)
    adjacent = g.select(shifted, g.add(g.mul(larger, scale), g.mul(smaller, half_scale)), larger)
    tangent = g.div(opposite, adjacent)
    z = g.mul(tangent, tangent)
    backwards = g.logical_xor(steep, left)  # from the y axis to the right, or from the -x axis up
    t = g.select(backwards, g.neg(tangent), tangent)
    high, low = (
        g.add(
            g.select(steep, c(pi / 2), g.select(left, c(pi), c(0.0))),
            g.select(shifted, g.select(backwards, c(-half), c(half)), c(0.0)),
        )
        for pi, half in zip(_PI_PARTS, _ARCTAN_HALF, strict=True)
    )
    rest = g.add(g.mul(g.mul(t, z), _polynomial(g, z, _ARCTAN)), low)
    return g.add(high, g.add(t, rest))
