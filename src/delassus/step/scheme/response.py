"""How a robot and its rows answer to forces: what impacts, corrections of positions and closed loops need of a step.

With W the inertia of a step, M and what springs, dampers and servos add to it, and J the rows. Sweeps over the tree
answer in O(n) (`compliant.response`), sparse factors of W in O(n d), d the depth of the tree, for as many forces as
one likes (`stages.assemble`).
"""

from __future__ import annotations

from typing import Any, Protocol


class Response(Protocol):
    """W⁻¹ and J of a state."""

    def solve(self, force: Any) -> Any:
        """W⁻¹ f (nv,) of generalised forces (nv,)."""

    def respond(self, impulse: Any) -> Any:
        """W⁻¹ Jᵀ λ (nv,) of impulses (m,) of the rows."""

    def velocities(self, v: Any) -> Any:
        """J v (m,) of velocities (nv,)."""

    def delassus(self) -> Any:
        """J W⁻¹ Jᵀ (m, m)."""
