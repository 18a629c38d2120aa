"""The implicitness of a time step: α for forces, β for positions.

M (v⁺ - v) = h ((1-α) f + α f⁺),      q⁺ = q ⊕ h ((1-β) v + β v⁺).
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Blend(NamedTuple):
    """The step h [s], α of forces and β of positions."""

    h: Any
    alpha: Any = 1.0
    beta: Any = 1.0

    def velocity(self, v: Any, v_end: Any) -> Any:
        """(1-β) v + β v⁺, the velocity with which positions are integrated; `v_end` is v⁺."""
        if isinstance(self.beta, float) and self.beta == 1.0:
            return v_end
        return v + self.beta * (v_end - v)
