"""Dormand and Prince's pair of orders 5 and 4 (Munthe-Kaas): it chooses its steps by a tolerance.

Seven evaluations a step; the step of fifth order is taken, and the one of fourth order tells how far off it may be.

Reference: J. R. Dormand, P. J. Prince, A family of embedded Runge–Kutta formulae, J. Comput. Appl. Math. 6 (1980).
"""

from __future__ import annotations

from typing import Final

from delassus.stepping.integrators.runge_kutta import RungeKutta

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
)
