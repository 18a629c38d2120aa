"""The Taylor step of the lecture: second order in positions, first in velocities.

    q⁺ = q ⊕ (h v + ½ h² a),      v⁺ = v + h a,      a = a(t, q, v)

Exact for constant accelerations, such as a throw. Otherwise errors of velocity are of first order, and find their way
into positions: as a whole it is of first order.

Reference: S. Savin, Contact-aware control, lecture 5 (2020), eq. 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from delassus.integrators.protocol import Step, System


@dataclass(frozen=True)
class Taylor:
    """The Taylor step."""

    name: str = "taylor"
    order: int = 1
    adaptive: bool = False
    has_dense_output: bool = False

    def step(self, system: System, time: Any, q: Any, v: Any, h: Any) -> Step:
        """One step."""
        a = system.acceleration(time, q, v)
        return Step(system.moved(q, h * v + 0.5 * h * h * a), v + h * a)
