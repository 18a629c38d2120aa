"""`ContactProblem`: a problem for impulses in cones, as data that can be inspected, saved and solved."""

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
    """Impulses λ and velocities σ = (G + R) λ + g after a step, such that each contact obeys its law.

    One problem or a batch: leading axes of all arrays broadcast. Normals point to the first body, λ_n ≥ 0 acts on it.

    Attributes:
        G: (…, m, m) Delassus matrix J M⁻¹ Jᵀ [1/kg], symmetric and not indefinite; zeros where it is an operator.
        operator: What G is given by instead: an object with `shape` and `apply`, such as a `DelassusOperator`; or None.
        g: (…, m) velocities without any impulses [m/s].
        layout: Which rows belong to which cone.
        friction: (…, contacts) coefficients of Coulomb friction, or None without contacts.
        torsional, rolling: (…, …) coefficients [m] of contacts with four or six rows, or None.
        lower, upper: (…, intervals) bounds of impulses [N·s], or None.
        compliance: (…, m) R, velocity that a row yields to an impulse [1/kg], or None.

    >>> problem = dl.ContactProblem(np.eye(3) / 2, [0.0, 0.0, -1.0], friction=0.7)
    >>> problem.solve().impulse.round(6)
    array([0., 0., 2.])
    """

    def solve(
        self, law: str | RigidLaw = "ncp", solver: str | SolverOptions | None = None, **shortcuts: Any
    ) -> ContactSolution:
        """Impulses and velocities that obey the laws of contact.

        Args:
            law: "ncp" for Signorini's and Coulomb's laws; "ccp" for their convex relaxation, in which sliding
                contacts lift; "lcp" or `Lcp(faces, pyramid)` for Coulomb's law with a pyramid in place of the cone.
            solver: A method, or `SolverOptions(method, tolerance, iterations, start)`. Methods are "pgs", "admm",
                "newton", or "auto": a few sweeps of the first, then the last, and slower and surer ways for problems
                that are not solved then. On a matrix "sequential_impulses" are the sweeps of "pgs". Of "ncp" also
                "bisection"; of convex problems also "clarabel", and without friction "proxsuite". Of "lcp": "lemke",
                which is its "auto", or, without friction, "dantzig". Pivoting methods and references do not use a
                start.
            **shortcuts: method, tolerance, iterations, start (solver); faces, pyramid (law).
        """
        law = _SOLVE.resolve_renamed(shortcuts, "law", law, "ncp")
        chosen, options = _SOLVE.fill(shortcuts, law=law, solver=solver)
        return solve_problem(self, chosen, options)
