"""Explicit Euler: along the velocity and acceleration that there are.

    q⁺ = q ⊕ h v,      v⁺ = v + h a(t, q, v)

First order. It adds energy to whatever swings: for comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from delassus.integrators.protocol import Step, System


@dataclass(frozen=True)
class ExplicitEuler:
    """Explicit Euler."""

    name: str = "explicit_euler"
    order: int = 1
    adaptive: bool = False
    has_dense_output: bool = False

    def step(self, system: System, time: Any, q: Any, v: Any, h: Any) -> Step:
        """One step."""
        return Step(system.moved(q, h * v), v + h * system.acceleration(time, q, v))
