"""Inputs of step kernels besides the state: run-time values and option names."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from delassus.compiler.host.inputs import Bundle, Group, Input
from delassus.contact.cones.parameters import ContactParameters
from delassus.contact.solvers.options import SolverInputs
from delassus.step.compliant.forces import Servo
from delassus.step.compliant.system import SOLVERS
from delassus.step.laws.inputs import PLANES, SOLVER, ContactPlanes

STABILIZATIONS: Final = ("none", "pre", "post", "project")
FORMED: Final = tuple(name for name in SOLVERS if name != "pgs")
"""Solvers that need the matrices of the system."""
IMPACTS: Final = ("newton", "reflections")


class Scheme(NamedTuple):
    """The blends of a step: α for forces and β for positions, from 0 (explicit) to 1 (implicit); None for 1."""

    alpha: Any = None
    beta: Any = None


class RowSprings(NamedTuple):
    """Elastic rows: C (m,) [m/N], B (m,) [N·s/m], C (m, m) of constraints with a compliance matrix, and the impulses
    (m,) of the previous step, from which the geometric stiffness is computed."""

    compliance: Any = None
    damping: Any = None
    compliance_matrix: Any = None
    geometric: Any = None


class StepNumbers(NamedTuple):
    """Run-time inputs of a step other than the state.

    Attributes:
        scheme: α and β (…).
        springs: Compliance and damping of all rows of the scene, contacts first; only normals of contacts have one.
        servo: Stiffness (…, nv), damping (…, nv) and target (…, nq).
        driven_velocity: (…, nv) prescribed velocities of driven joints.
        contact: Friction, torsional and rolling friction, restitution.
        planes: The planes of contacts with the world.
        time: (…) [s].
        solver: Warm start and termination criteria.
    """

    scheme: Scheme = Scheme()
    springs: RowSprings = RowSprings()
    servo: Servo = Servo()
    driven_velocity: Any = None
    contact: ContactParameters = ContactParameters()
    planes: ContactPlanes = ContactPlanes()
    time: Any = None
    solver: SolverInputs = SolverInputs()


NO_NUMBERS: Final = StepNumbers()

_FORM: Final[dict[str, Group | str]] = {
    "scheme": Group(Scheme, alpha=Input("()", 1.0), beta=Input("()", 1.0)),
    "springs": Group(RowSprings, compliance="(m)", damping="(m)", compliance_matrix="(m,m)", geometric="(m)"),
    "servo": Group(Servo, stiffness="(nv)", damping="(nv)", target="(nq)"),
    "driven_velocity": "(nv)",
    "contact": Group(ContactParameters, restitution="(points)"),
    "planes": PLANES,
    "time": "()",
}
FORM_NUMBERS: Final = Bundle(StepNumbers, **_FORM)
"""Inputs of kernels that form the system of a step."""

_CONTACT: Final = Group(
    ContactParameters, friction="(points)", torsional="(torsional)", rolling="(rolling)", restitution="(points)"
)
NUMBERS: Final = Bundle(StepNumbers, **{**_FORM, "contact": _CONTACT, "solver": SOLVER})
"""Inputs of kernels that form and solve the system of a step."""
