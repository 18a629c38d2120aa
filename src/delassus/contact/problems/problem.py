"""`ContactProblem`: contact impulses as a problem that can be inspected, saved and solved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from delassus.common.options import Shortcuts
from delassus.contact.problems.data import ContactData
from delassus.contact.problems.solution import ContactSolution
from delassus.contact.problems.solving import solve_problem
from delassus.contact.solvers.laws import RIGID_LAWS, RigidLaw
from delassus.contact.solvers.options import SolverOptions

_SOLVE: Final = Shortcuts(
    "ContactProblem.solve", renamed={"model": "law"}, code="unknown-law", law=RIGID_LAWS, solver=SolverOptions()
)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class ContactProblem(ContactData):
    """Find impulses λ and velocities σ = (G + R) λ + g after a step that satisfy the law of each contact.

    One problem or a batch: the leading axes of all arrays broadcast. Normals point to the first body, on which λ_n ≥ 0
    acts.

    Attributes:
        G: (…, m, m) Delassus matrix J M⁻¹ Jᵀ [1/kg], symmetric and positive semidefinite; zeros if there is an
        operator.
        operator: An object with `shape` and `apply` in place of G, such as a `DelassusOperator`; or None.
        g: (…, m) free velocities, without impulses [m/s].
        layout: Which rows belong to which cone.
        friction: (…, contacts) coefficients of Coulomb friction, or None without contacts.
        torsional, rolling: (…, …) coefficients [m] of contacts with four or six rows, or None.
        lower, upper: (…, intervals) bounds of impulses [N·s], or None.
        compliance: (…, m) R, velocity of a row per unit of impulse [1/kg], or None.

    >>> problem = dl.ContactProblem(np.eye(3) / 2, [0.0, 0.0, -1.0], friction=0.7)
    >>> problem.solve().impulse.round(6)
    array([0., 0., 2.])
    """

    def solve(
        self, law: str | RigidLaw = "ncp", solver: str | SolverOptions | None = None, **shortcuts: Any
    ) -> ContactSolution:
        """Solve for impulses and velocities.

        Args:
            law: "ncp" for Signorini's and Coulomb's laws; "ccp" for their convex relaxation, in which sliding
                contacts lift; "lcp" or `Lcp(faces, pyramid)` for Coulomb's law with a pyramid in place of the cone.
            solver: A method, or `SolverOptions(method, tolerance, iterations, start)`. For "ncp" and "ccp": "pgs",
            "admm",
                "newton", or "auto" (default): a few sweeps of "pgs", then "newton", then slower and more robust methods
            for
                problems that remain unsolved. "sequential_impulses" on a matrix is "pgs". For "ncp" also "bisection";
            for
                convex problems also "clarabel", and without friction "proxsuite". For "lcp": "lemke" (default) or,
            without
                friction, "dantzig". Pivoting methods and external solvers do not use `start`.
            **shortcuts: method, tolerance, iterations, start (solver); faces, pyramid (law).
        """
        law = _SOLVE.resolve_renamed(shortcuts, "law", law, "ncp")
        rigid_law, options = _SOLVE.fill(shortcuts, law=law, solver=solver)
        return solve_problem(self, rigid_law, options)
