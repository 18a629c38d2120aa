"""Semi-implicit (symplectic) Euler: the velocity first, the configuration along the new one.

    v⁺ = v + h a(t, q, v),      q⁺ = q ⊕ h v⁺

First order, one evaluation. Energies of what swings freely stay near their values for long, so most simulators use it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from delassus.integrators.protocol import Step, System


@dataclass(frozen=True)
class SemiImplicitEuler:
    """Semi-implicit Euler."""

    name: str = "semi_implicit_euler"
    order: int = 1
    adaptive: bool = False
    has_dense_output: bool = False

    def step(self, system: System, time: Any, q: Any, v: Any, h: Any) -> Step:
        """One step."""
        faster = v + h * system.acceleration(time, q, v)
        return Step(system.moved(q, h * faster), faster)
