"""Solutions of contact problems, with residuals recomputed from the returned values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.deprecated import OldName
from delassus.common.outcomes import Outcome, summary_of_worst
from delassus.constrained.solvers.status import Status
from delassus.contact.problems import measures
from delassus.contact.problems.data import ContactData

Array = NDArray[np.float64]

MODES: Final = ("open", "sticking", "sliding")


@dataclass(frozen=True, eq=False)
class ContactSolution(Outcome):
    """Impulses and velocities of a contact problem, one or a batch, with residual and status.

    Attributes:
        problem: The contact problem.
        law: The law that was solved: "ncp", "ccp" or "lcp".
        impulse: (…, m) λ [N·s].
        velocity: (…, m) σ = (G + R) λ + g [m/s].
        residuals: (…, m) d (λ - P(λ - (σ + Γ)/d)) [m/s], d the mean response of a contact: zero for a solution.
        iterations: (…) number of iterations.
        status: (…) values of `Status`.
        pyramid: For law "lcp" the number of faces and "inner" or "outer"; else None.

    >>> solution = dl.ContactProblem(np.eye(3), [0.0, 0.0, -1.0], friction=0.5).solve()
    >>> isinstance(solution, dl.contact.ContactSolution)
    True
    """

    status_type: ClassVar = Status

    problem: ContactData
    law: str
    impulse: Array
    velocity: Array
    residuals: Array
    iterations: NDArray[np.int64]
    status: NDArray[np.int64]
    pyramid: measures.Pyramid | None = None

    @property
    def residual(self) -> Array:
        """(…) the largest residual of a row [m/s]."""
        return np.abs(self.residuals).max(-1)

    @property
    def corrected_velocity(self) -> Array:
        """(…, m) σ + Γ(σ) [m/s], which is complementary to λ; for convex problems, σ itself."""
        convex = self.law in ("ccp", "relaxed")
        return (
            self.velocity if convex else self.velocity + measures.correction(self.problem, self.velocity, self.pyramid)
        )

    corrected = OldName("corrected_velocity")

    @property
    def primal_violation(self) -> Array:
        """(…) primal violation [N·s]: how far impulses are outside their cones and bounds."""
        return measures.primal(self.problem, self.impulse, self.pyramid)

    @property
    def dual_violation(self) -> Array:
        """(…) dual violation [m/s]: how far velocities σ + Γ are outside the dual cones."""
        return measures.dual(self.problem, self.corrected_velocity, self.pyramid)

    @property
    def complementarity_violation(self) -> Array:
        """(…) the largest |λᵀ (σ + Γ)| of a cone [J]."""
        return measures.complementarity(self.problem, self.impulse, self.corrected_velocity)

    @property
    def dissipation(self) -> Array:
        """(…, contacts) energy dissipated by friction [J]."""
        return measures.dissipation(self.problem, self.impulse, self.velocity)

    @property
    def modes(self) -> NDArray[np.str_]:
        """(…, contacts) of each contact "open", "sticking" or "sliding"."""
        sliding_from, closed_from = 1e-6 * np.abs(self.problem.g).max(-1), 1e-9 * np.abs(self.impulse).max(-1)
        modes = []
        for impulse, velocity in zip(
            measures.contacts_of(self.problem, self.impulse),
            measures.contacts_of(self.problem, self.velocity),
            strict=True,
        ):
            slides = np.linalg.norm(velocity[0][..., :2], axis=-1) > sliding_from
            modes.append(np.where(impulse[1] > closed_from, np.where(slides, 2, 1), 0))
        return np.array(MODES)[np.stack(modes, -1)] if modes else np.zeros((*self.impulse.shape[:-1], 0), "<U8")

    def describe(self) -> str:
        """Describe the result in a sentence or two; for a batch, that of the worst problem."""
        status = np.asarray(self.status)
        worst, text = summary_of_worst(Status, status, "problem")
        if worst in (None, Status.NOT_FINITE):
            return text
        residual = np.where(status == worst, self.residual, -1.0)
        at = np.unravel_index(int(np.argmax(residual)), status.shape)
        where = f" of problem {', '.join(map(str, map(int, at)))}" if status.size > 1 else ""
        return f"{text} The residual{where} is {residual[at]:.3g} m/s after {int(self.iterations[at])} iterations."
