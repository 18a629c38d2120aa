"""arctan, arctan2, arcsin and arccos as graph operations.

arctan and arctan2: the smaller of |x|, |y| over the larger is the tangent of an angle up to π/4. From 3/8 on it is
measured from arctan 1/2 instead, by (n - d/2) / (d + n/2), where the difference is exact: one division in all, and
a polynomial for tangents up to 3/8. The multiples of π/2 and arctan 1/2 that complete the angle have exact sums,
and what they lack is added before they are. Measured error below 1.5 ulp everywhere. The sign of zero counts for
nothing: a zero of either sign is +0, so arctan2(±0, x) is 0 for x = ±0 and x > 0, and +π for x < 0.

arcsin and arccos: a polynomial up to |x| = 1/2; beyond, arcsin x = π/2 - 2 arcsin √((1 - x)/2), whose argument is up to
1/2 again, and the difference under the root is exact. What the difference from π/2 loses is added again. Measured
error below 1.1 ulp (single: 1.2).
"""

import math
from typing import Final

import numpy as np

from delassus.compiler.functions.elementary import polynomial
from delassus.compiler.functions.registry import elementary
from delassus.compiler.graph.graph import ONE, Builder
from delassus.compiler.graph.precision import DOUBLE, SINGLE

_ARCTAN: Final = {
    DOUBLE: (
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
    ),
    SINGLE: (-0.06471055001020432, 0.10729305446147919, -0.1425948292016983, 0.19999201595783234, -0.33333325386047363),
}
"""arctan t = t + t³ P(t²) for |t| ≤ 3/8, relative error below 2⁻⁶⁰ and 2⁻³¹."""

_PI_PARTS: Final = {
    DOUBLE: (math.pi, float.fromhex("0x1.1a62633145c07p-53")),
    SINGLE: (float.fromhex("0x1.921fb8p+1"), float.fromhex("-0x1.5dde98p-22")),
}
_ARCTAN_HALF: Final = {
    DOUBLE: (float.fromhex("0x1.dac670561bb40p-2"), float.fromhex("0x1.ed15bf9117b2fp-51")),
    SINGLE: (float.fromhex("0x1.dac68p-2"), float.fromhex("-0x1.f53c8ap-23")),
}
"""π and arctan 1/2 as sums of two floats; half of the first π and the first arctangent are multiples of 2⁻⁴⁹ (single:
2⁻²¹), so that their sums are exact."""

_MEDIUM: Final = {DOUBLE: 2.0**60, SINGLE: 2.0**30}
"""A factor that takes the smallest numbers away from where differences are subnormal."""

_ARCSIN: Final = {
    DOUBLE: (
        0.03267691339479511,
        -0.0210773384172809,
        0.02176353872845846,
        0.0036830223962352375,
        0.010786535248955998,
        0.01139777467997954,
        0.013980961637382328,
        0.017351600074315198,
        0.02237221566134484,
        0.030381942683582165,
        0.04464285717512128,
        0.07499999999970262,
        0.16666666666666763,
    ),
    SINGLE: (0.04215838760137558, 0.02418474294245243, 0.04546915367245674, 0.074953094124794, 0.16666752099990845),
}
"""arcsin t = t + t³ P(t²) for |t| ≤ 1/2, relative error below 2⁻⁵⁹ and 2⁻²⁷."""


@elementary(np.arctan, partials=(lambda g, y, x: g.div(ONE, g.add(ONE, g.mul(x, x))),))
def arctan(g: Builder, x: int) -> int:
    """The angle in [-π/2, π/2] whose tangent is x."""
    one, size = g.constant(1.0), g.abs(x)
    steep = g.lt(one, size)
    smaller, larger = g.select(steep, one, size), g.select(steep, size, one)
    angle = _first_half_turn(g, smaller, larger, one, steep, g.constant(False))
    return g.select(g.lt(x, g.constant(0.0)), g.neg(angle), angle)


def _square_sum(g: Builder, a: int, b: int) -> int:
    return g.add(g.mul(a, a), g.mul(b, b))


@elementary(
    np.arctan2,
    partials=(
        lambda g, angle, y, x: g.div(x, _square_sum(g, y, x)),
        lambda g, angle, y, x: g.neg(g.div(y, _square_sum(g, y, x))),
    ),
)
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
    medium = _MEDIUM[g.precision]
    scale = g.select(g.lt(larger, c(1.0)), c(medium), c(1.0 / medium))
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
        for pi, half in zip(_PI_PARTS[g.precision], _ARCTAN_HALF[g.precision], strict=True)
    )
    remainder = g.add(g.mul(g.mul(t, z), polynomial(g, z, _ARCTAN)), low)
    return g.add(high, g.add(t, remainder))


def _inverse_square_root(g: Builder, x: int) -> int:
    """1 / √(1 - x²), without the cancellation at ±1."""
    return g.div(ONE, g.sqrt(g.mul(g.sub(ONE, x), g.add(ONE, x))))


@elementary(np.arcsin, partials=(lambda g, y, x: _inverse_square_root(g, x),))
def arcsin(g: Builder, x: int) -> int:
    """The angle in [-π/2, π/2] whose sine is x; NaN for |x| > 1."""
    flat, sine, bent = _small_arcsin(g, x)
    angle = g.select(flat, g.add(sine, bent), _less(g, 0.5, sine, bent, g.constant(2.0)))
    return g.select(g.lt(x, g.constant(0.0)), g.neg(angle), angle)


@elementary(np.arccos, partials=(lambda g, y, x: g.neg(_inverse_square_root(g, x)),))
def arccos(g: Builder, x: int) -> int:
    """The angle in [0, π] whose cosine is x; NaN for |x| > 1."""
    c = g.constant
    flat, sine, angle = _small_arcsin(g, x)
    negative = g.lt(x, c(0.0))
    # From the y axis, up to a sixth of a turn; else from the x axis to the right or to the left.
    signed_sine, signed_bent = (g.select(negative, g.neg(part), part) for part in (sine, angle))
    upright = _less(g, 0.5, signed_sine, signed_bent, c(1.0))
    right = g.mul(g.add(sine, angle), c(2.0))
    return g.select(flat, upright, g.select(negative, _less(g, 1.0, sine, angle, c(2.0)), right))


def _small_arcsin(g: Builder, x: int) -> tuple[int, int, int]:
    """Whether |x| <= 1/2; then |x|, else √((1 - |x|)/2), as a sine, and by how much its angle is larger."""
    c, size = g.constant, g.abs(x)
    flat = g.le(size, c(0.5))
    z = g.select(flat, g.mul(size, size), g.mul(g.sub(c(1.0), size), c(0.5)))
    sine = g.select(flat, size, g.sqrt(z))
    return flat, sine, g.mul(g.mul(sine, z), polynomial(g, z, _ARCSIN))


def _less(g: Builder, half_turns: float, sine: int, angle: int, times: int) -> int:
    """π or π/2 less `times` (1 or 2) the sum of two numbers, the second one much smaller than the first."""
    pi, pi_rest = _PI_PARTS[g.precision]
    half_turn, part = g.constant(pi * half_turns), g.mul(sine, times)
    difference = g.sub(half_turn, part)
    rounding = g.sub(g.sub(half_turn, difference), part)
    remainder = g.sub(g.mul(angle, times), g.constant(pi_rest * half_turns))
    return g.add(difference, g.sub(rounding, remainder))
