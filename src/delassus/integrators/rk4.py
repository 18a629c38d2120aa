"""RK4 (Munthe-Kaas): the classical method with four evaluations a step, of fourth order.

For steps of a fixed length, where motions are smooth: errors fall by 16 when steps are halved.
"""

from __future__ import annotations

from typing import Final

from delassus.integrators.runge_kutta import RungeKutta

RK4: Final = RungeKutta(
    "rk4",
    order=4,
    a=((0.0, 0.0, 0.0, 0.0), (0.5, 0.0, 0.0, 0.0), (0.0, 0.5, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)),
    b=(1 / 6, 1 / 3, 1 / 3, 1 / 6),
    c=(0.0, 0.5, 0.5, 1.0),
)
