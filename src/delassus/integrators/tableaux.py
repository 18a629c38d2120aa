"""Butcher tableaux of Runge–Kutta methods, on Lie groups by Munthe-Kaas's method.

    RK4              order 4, explicit, four evaluations a step: fixed steps, for smooth motions
    DORMAND_PRINCE   order 5 with an embedded step of order 4: adaptive; six evaluations a step, since the last of its
                     seven stages is the first of the next step; dense output of order 4
    IMPLICIT_EULER   v⁺ = v + h a(t + h, q⁺, v⁺), q⁺ = q ⊕ h v⁺: order 1, stable for any stiffness, and damped
    MIDPOINT         v⁺ = v + h a(t + h/2, q ⊕ ½ h w, w), q⁺ = q ⊕ h w, w = ½ (v + v⁺): order 2, symmetric; conserves
                     quadratic invariants of velocities and Euclidean coordinates, such as the energy of linear springs
    GAUSS            Gauss–Legendre with two stages, order 4, symmetric, for long runs: quadratic invariants as MIDPOINT

References: J. R. Dormand, P. J. Prince, A family of embedded Runge–Kutta formulae, J. Comput. Appl. Math. 6 (1980);
L. F. Shampine, Some practical Runge–Kutta formulas, Mathematics of Computation 46 (1986), for the dense output;
E. Hairer, C. Lubich, G. Wanner, Geometric Numerical Integration (2006), II.1.3.
"""

from __future__ import annotations

import math
from typing import Final

from delassus.integrators.implicit import ImplicitRungeKutta
from delassus.integrators.runge_kutta import RungeKutta

RK4: Final = RungeKutta(
    "rk4",
    order=4,
    a=((0.0, 0.0, 0.0, 0.0), (0.5, 0.0, 0.0, 0.0), (0.0, 0.5, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)),
    b=(1 / 6, 1 / 3, 1 / 3, 1 / 6),
    c=(0.0, 0.5, 0.5, 1.0),
)

_WEIGHTS: Final = (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0)

DORMAND_PRINCE: Final = RungeKutta(
    "dopri5",
    order=5,
    a=(
        (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        (1 / 5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        (3 / 40, 9 / 40, 0.0, 0.0, 0.0, 0.0, 0.0),
        (44 / 45, -56 / 15, 32 / 9, 0.0, 0.0, 0.0, 0.0),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0.0, 0.0, 0.0),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0.0, 0.0),
        _WEIGHTS,
    ),
    b=_WEIGHTS,
    c=(0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0),
    lower=(5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40),
    dense=(
        (1.0, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432),
        (0.0, 0.0, 0.0, 0.0),
        (0.0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799),
        (0.0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072),
        (0.0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632),
        (0.0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844),
        (0.0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423),
    ),
)

IMPLICIT_EULER: Final = ImplicitRungeKutta("implicit_euler", order=1, a=((1.0,),), b=(1.0,), c=(1.0,))

MIDPOINT: Final = ImplicitRungeKutta("midpoint", order=2, a=((0.5,),), b=(1.0,), c=(0.5,))

_APART: Final = math.sqrt(3.0) / 6

GAUSS: Final = ImplicitRungeKutta(
    "gauss",
    order=4,
    a=((0.25, 0.25 - _APART), (0.25 + _APART, 0.25)),
    b=(0.5, 0.5),
    c=(0.5 - _APART, 0.5 + _APART),
)
