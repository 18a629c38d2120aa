"""First-order methods with one evaluation of a = a(t, q, v) per step.

    ExplicitEuler        q⁺ = q ⊕ h v,                v⁺ = v + h a      adds energy to oscillations: for comparisons
    SemiImplicitEuler    q⁺ = q ⊕ h v⁺,               v⁺ = v + h a      nearly conserves the energy of oscillations
    Taylor               q⁺ = q ⊕ (h v + ½ h² a),     v⁺ = v + h a      exact for constant accelerations

Reference for `Taylor`: S. Savin, Contact-aware control, lecture 5 (2020), eq. 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from delassus.integrators.protocol import Step, System


@dataclass(frozen=True)
class _FirstOrder:
    name: str = ""
    order: int = 1
    adaptive: bool = False
    has_dense_output: bool = False


@dataclass(frozen=True)
class ExplicitEuler(_FirstOrder):
    """Explicit Euler: uses the velocity and acceleration at the start of the step."""

    name: str = "explicit_euler"

    def step(self, system: System, time: Any, q: Any, v: Any, h: Any) -> Step:
        """Advance q and v by one step of h [s]."""
        return Step(system.integrate(q, h * v), v + h * system.acceleration(time, q, v))


@dataclass(frozen=True)
class SemiImplicitEuler(_FirstOrder):
    """Semi-implicit (symplectic) Euler: updates the velocity first, then the configuration along the new velocity."""

    name: str = "semi_implicit_euler"

    def step(self, system: System, time: Any, q: Any, v: Any, h: Any) -> Step:
        """Advance q and v by one step of h [s]."""
        v_end = v + h * system.acceleration(time, q, v)
        return Step(system.integrate(q, h * v_end), v_end)


@dataclass(frozen=True)
class Taylor(_FirstOrder):
    """The Taylor step: second order in positions, first order in velocities and overall."""

    name: str = "taylor"

    def step(self, system: System, time: Any, q: Any, v: Any, h: Any) -> Step:
        """Advance q and v by one step of h [s]."""
        a = system.acceleration(time, q, v)
        return Step(system.integrate(q, h * v + 0.5 * h * h * a), v + h * a)
