"""Gauss–Legendre with two stages: fourth order, implicit, for long runs.

Collocation at the two points of Gauss. As the mid-point rule, it is symmetric and keeps quadratic invariants. Energies
of other free motions stay within a bound of fourth order instead of drifting.

Reference: E. Hairer, C. Lubich, G. Wanner, Geometric Numerical Integration (2006), II.1.3.
"""

from __future__ import annotations

import math
from typing import Final

from delassus.integrators.implicit import ImplicitRungeKutta

_APART: Final = math.sqrt(3.0) / 6

GAUSS: Final = ImplicitRungeKutta(
    "gauss",
    order=4,
    a=((0.25, 0.25 - _APART), (0.25 + _APART, 0.25)),
    b=(0.5, 0.5),
    c=(0.5 - _APART, 0.5 + _APART),
)
