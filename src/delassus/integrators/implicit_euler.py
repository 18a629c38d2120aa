"""Implicit Euler: along the velocity and acceleration at the end of the step.

    v⁺ = v + h a(t + h, q⁺, v⁺),      q⁺ = q ⊕ h v⁺

First order. It takes energy from whatever moves faster than the step resolves: stable for any stiffness, and damped.
"""

from __future__ import annotations

from typing import Final

from delassus.integrators.implicit import ImplicitRungeKutta

IMPLICIT_EULER: Final = ImplicitRungeKutta("implicit_euler", order=1, a=((1.0,),), b=(1.0,), c=(1.0,))
