"""The interface between contact solvers and problems, and its optional parts.

    σ = G λ + g,    λ in its cones,    λ = P(λ - σ - Γ(σ))

in the solvers' order of rows (free, half-lines, intervals, contacts) and in units in which a contact responds to its
own impulse by about one. Arrays are (m,), traced, or (B, m), a batch of NumPy. Four systems are solved in the house:

    Scaled                a dense matrix G, traced                             `systems.scaled`
    VelocitySpaceProblem          J and M⁻¹ Jᵀ, traced: G is not formed                `systems.velocity_space`
    BodySpaceProblem               body space, G = P S Pᵀ, traced                       `step.stages.body_space`
    Rows, OperatorRows    dense matrices, or an operator: batches of NumPy     `contact.large`

A system names its `capabilities`; a solver says which of them it needs, see `solvers.registry`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from delassus.contact.cones.layout import Layout

MATRIX: Final = "matrix"
"""G is there, by its entries."""
SWEEP: Final = "sweep"
"""Rows can be changed one after the other."""
SHIFT: Final = "shift"
"""(G + ρ)⁻¹ b."""
NEWTON: Final = "newton"
"""(I - D + D (G + ρ))⁻¹ r."""
TRACED: Final = "traced"
"""Arrays are traced, those of one state, and loops are compiled."""
BATCH: Final = "batch"
"""Arrays are batches of NumPy, and loops run on the host."""
ENTRIES: Final = "entries"
"""Numbers are there, outside of a kernel, for solvers of other packages."""
PYRAMIDS: Final = "pyramids"
"""Cones are pyramids, of a linear complementarity problem."""

Update = Callable[[Any, Any, Any, Any, Any], Any]
"""New impulses of a contact from its own G, impulses, velocities, friction, and relaxation."""


class ContactSystem(Protocol):
    """A problem as solvers see it."""

    @property
    def layout(self) -> Layout:
        """Which rows belong to which cone."""

    @property
    def convex(self) -> bool:
        """Whether Γ, the correction of de Saxcé, is dropped."""

    @property
    def g(self) -> Any:
        """(m,) velocities without impulses."""

    @property
    def limit(self) -> Any:
        """(m,) the residual that a row may have at a tolerance of one."""

    @property
    def capabilities(self) -> frozenset[str]:
        """Which of the methods below the system has."""

    def velocity(self, impulse: Any) -> Any:
        """σ = G λ + g (m,)."""

    def corrected_velocity(self, velocity: Any) -> Any:
        """σ + Γ(σ) (m,)."""

    def project(self, x: Any) -> Any:
        """P(x) (m,), the nearest impulses that the cones allow."""

    def smooth(self, x: Any, e: Any) -> tuple[Any, list[Any]]:
        """The projection of Alart and Curnier with kinks rounded by e (m,), and its slopes D by blocks."""

    def error(self, impulse: Any, velocity: Any) -> Any:
        """The largest residual of a row as a share of its limit."""


class SweptSystem(ContactSystem, Protocol):
    """A system whose rows can be changed one after the other.

    The `response` of a sweep is whatever impulses change: velocities of rows, of bodies, or motions of bodies.
    """

    def respond(self, impulse: Any, velocity: Any = None) -> Any:
        """The response to impulses (m,), whose velocities (m,) may be known."""

    def sweep(self, impulse: Any, response: Any, relaxation: Any = 1.0, update: Update | None = None) -> Any:
        """Impulses (m,) and the response after one pass over all rows; `update` solves one contact."""

    def velocity_of(self, response: Any, impulse: Any) -> Any:
        """σ (m,), from the response."""


def natural_residual(system: Any, impulse: Any, velocity: Any) -> Any:
    """λ - P(λ - σ - Γ(σ)) (m,): zero for a solution and for nothing else."""
    return impulse - system.project(impulse - system.corrected_velocity(velocity))
