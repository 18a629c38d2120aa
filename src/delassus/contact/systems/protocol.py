"""The interface between contact solvers and problems, and its optional parts.

    σ = G λ + g,    λ in its cones,    λ = P(λ - σ - Γ(σ))

in the solvers' order of rows (free, half-lines, intervals, contacts) and in units in which the response of a contact to
its own impulse is about one. Arrays are (m,) and traced, or (B, m), a batch of NumPy. There are four systems:

    Scaled                a dense matrix G, traced                             `systems.scaled`
    VelocitySpaceProblem          J and M⁻¹ Jᵀ, traced: G is not formed                `systems.velocity_space`
    BodySpaceProblem               body space, G = P S Pᵀ, traced                       `step.stages.body_space`
    Rows, OperatorRows    dense matrices, or an operator: batches of NumPy     `contact.large`

A system lists its `capabilities`; a solver lists those that it needs, see `solvers.registry`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from delassus.contact.cones.layout import Layout

MATRIX: Final = "matrix"
"""The entries of G are available."""
SWEEP: Final = "sweep"
"""Rows can be changed one after the other."""
SHIFT: Final = "shift"
"""(G + ρ)⁻¹ b."""
NEWTON: Final = "newton"
"""(I - D + D (G + ρ))⁻¹ r."""
TRACED: Final = "traced"
"""Arrays are traced, those of one state, and loops are compiled."""
BATCH: Final = "batch"
"""Arrays are NumPy batches, and loops run on the host."""
ENTRIES: Final = "entries"
"""Values are available outside of kernels, for external solvers."""
PYRAMIDS: Final = "pyramids"
"""Cones are pyramids, in a linear complementarity problem."""

Update = Callable[[Any, Any, Any, Any, Any], Any]
"""New impulses of a contact from its block of G, impulses, velocities, friction, and relaxation."""


class ContactSystem(Protocol):
    """The interface of a problem."""

    @property
    def layout(self) -> Layout:
        """Which rows belong to which cone."""

    @property
    def convex(self) -> bool:
        """Whether the law is convex, Γ = 0."""

    @property
    def g(self) -> Any:
        """(m,) velocities without impulses."""

    @property
    def limit(self) -> Any:
        """(m,) the residual that a row may have at a tolerance of one."""

    @property
    def capabilities(self) -> frozenset[str]:
        """The capabilities of the system."""

    def velocity(self, impulse: Any) -> Any:
        """σ = G λ + g (m,)."""

    def corrected_velocity(self, velocity: Any) -> Any:
        """σ + Γ(σ) (m,)."""

    def project(self, x: Any) -> Any:
        """P(x) (m,), the projection of impulses onto the cones."""

    def smooth(self, x: Any, e: Any) -> tuple[Any, list[Any]]:
        """The projection of Alart and Curnier, smoothed with radius e (m,), and its slopes D by blocks."""

    def error(self, impulse: Any, velocity: Any) -> Any:
        """The largest residual of a row, relative to its limit."""


class SweptSystem(ContactSystem, Protocol):
    """A system whose rows can be changed one after the other.

    The `response` of a sweep is what impulses change: velocities of rows, of bodies, or spatial motions.
    """

    def respond(self, impulse: Any, velocity: Any = None) -> Any:
        """The response to impulses (m,); `velocity` (m,) are their velocities, if known."""

    def sweep(self, impulse: Any, response: Any, relaxation: Any = 1.0, update: Update | None = None) -> Any:
        """Impulses (m,) and the response after one sweep over all rows; `update` solves one contact."""

    def velocity_of(self, response: Any, impulse: Any) -> Any:
        """σ (m,) of a response."""


def natural_residual(system: Any, impulse: Any, velocity: Any) -> Any:
    """λ - P(λ - σ - Γ(σ)) (m,): zero exactly for solutions."""
    return impulse - system.project(impulse - system.corrected_velocity(velocity))
