"""The implicit mid-point rule: along the velocity and acceleration half way.

    v⁺ = v + h a(t + h/2, q ⊕ θ, w),      q⁺ = q ⊕ h w,      w = ½ (v + v⁺),      θ = ½ h w

Second order, symmetric. What is quadratic in velocities and coordinates that can be added, and stays the same in the
motion, stays the same to rounding, such as the energy of linear springs and the energy and momentum of a free body.
"""

from __future__ import annotations

from typing import Final

from delassus.integrators.implicit import ImplicitRungeKutta

MIDPOINT: Final = ImplicitRungeKutta("midpoint", order=2, a=((0.5,),), b=(1.0,), c=(0.5,))
