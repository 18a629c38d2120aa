"""log and log1p as graph operations.

x = 2ᵏ (1 + f) with √½ ≤ 1 + f < √2. With s = f/(2 + f), log(1 + f) = 2 artanh s = f - f²/2 + s (f²/2 + s² Q(s²)), in
which f is exact and all else is smaller. k·ln 2 is added in two parts; the product of the first one with k is exact.
Measured error below 0.9 ulp. The logarithm of zero is -inf, that of negative numbers NaN.
"""

import math
from typing import Final

import numpy as np

from delassus.compiler.functions.elementary import polynomial
from delassus.compiler.functions.registry import elementary
from delassus.compiler.graph.graph import ONE, Builder
from delassus.compiler.graph.precision import DOUBLE, SINGLE

_LN2: Final = {
    DOUBLE: (float.fromhex("0x1.62e42ffp-1"), float.fromhex("-0x1.718432a1b0e26p-35")),
    SINGLE: (float.fromhex("0x1.62e4p-1"), float.fromhex("0x1.7f7d1cp-20")),
}

_ARTANH: Final = {
    DOUBLE: (
        0.14796096338455247,
        0.15314036685121393,
        0.1818356483574872,
        0.22222198564040427,
        0.28571428742469757,
        0.39999999999414343,
        0.6666666666666734,
    ),
    SINGLE: (0.2987082898616791, 0.39977583289146423, 0.6666677594184875),
}
"""2 artanh s = 2 s + s³ Q(s²) for |s| ≤ 0.1716, relative error below 2⁻⁵⁸ and 2⁻³⁰."""


@elementary(np.log, partials=(lambda g, y, x: g.div(ONE, x),))
def log(g: Builder, x: int) -> int:
    """The natural logarithm."""
    c = g.constant
    k = _exponent(g, x)
    f = g.sub(g.scale(x, g.neg(k)), c(1.0))
    return _on_domain(g, x, c(0.0), _sum(g, k, f, g.mul(k, c(_LN2[g.precision][1]))))


@elementary(np.log1p, partials=(lambda g, y, x: g.div(ONE, g.add(ONE, x)),))
def log1p(g: Builder, x: int) -> int:
    """log(1 + x), to all digits where x is small."""
    c = g.constant
    one = c(1.0)
    u = g.add(one, x)
    k = _exponent(g, u)
    is_small = g.eq(k, c(0.0))
    f = g.select(is_small, x, g.sub(g.scale(u, g.neg(k)), one))
    rounding = g.select(g.lt(one, x), g.sub(one, g.sub(u, x)), g.sub(x, g.sub(u, one)))
    correction = g.select(is_small, c(0.0), g.div(rounding, u))
    return _on_domain(g, x, c(-1.0), _sum(g, k, f, g.add(g.mul(k, c(_LN2[g.precision][1])), correction)))


def _exponent(g: Builder, x: int) -> int:
    """k so that x 2⁻ᵏ is between √½ and √2; right also where x √2 overflows or is subnormal."""
    return g.exponent(g.mul(x, g.constant(math.sqrt(2.0))))


def _sum(g: Builder, k: int, f: int, small: int) -> int:
    """k·ln 2 + log(1 + f), with the second part of k·ln 2 and other small terms given."""
    c = g.constant
    s = g.div(f, g.add(f, c(2.0)))
    z = g.mul(s, s)
    half = g.mul(g.mul(f, c(0.5)), f)
    remainder = g.add(g.mul(s, g.add(half, g.mul(z, polynomial(g, z, _ARTANH)))), small)
    return g.sub(g.mul(k, c(_LN2[g.precision][0])), g.sub(g.sub(half, remainder), f))


def _on_domain(g: Builder, x: int, pole: int, value: int) -> int:
    """The value between pole and infinity; -inf at the pole, NaN below and for NaN."""
    c = g.constant
    outside = g.select(g.eq(x, pole), c(-math.inf), c(math.nan))
    return g.select(g.lt(pole, x), g.select(g.eq(x, c(math.inf)), x, value), outside)
