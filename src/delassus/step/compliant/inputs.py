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
"""Solvers for which the system is formed."""
IMPACTS: Final = ("newton", "reflections")


class Scheme(NamedTuple):
    """The blends of a step: α of forces and β of positions, 1 by default."""

    alpha: Any = None
    beta: Any = None


class RowSprings(NamedTuple):
    """Elastic rows: C (m,) [m/N] and B (m,) [N·s/m], C (m, m) of constraints with a matrix, and impulses
    (m,) of the step before, for their geometric stiffness."""

    compliance: Any = None
    damping: Any = None
    compliance_matrix: Any = None
    geometric: Any = None


class StepNumbers(NamedTuple):
    """Run-time inputs of a step other than the state.

    Attributes:
        scheme: α and β (…).
        springs: Of all rows of the scene, contacts first; normals of contacts have their compliance.
        servo: Stiffness (…, nv), damping (…, nv) and target (…, nq).
        driven_velocity: (…, nv) of driven joints.
        contact: Friction, torsional and rolling friction, restitution.
        planes: What contacts touch.
        time: (…) [s].
        solver: Where a solve begins, and where it ends.
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
"""Of kernels that form the system of a step."""

_CONTACT: Final = Group(
    ContactParameters, friction="(points)", torsional="(torsional)", rolling="(rolling)", restitution="(points)"
)
NUMBERS: Final = Bundle(StepNumbers, **{**_FORM, "contact": _CONTACT, "solver": SOLVER})
"""Of kernels that solve it, too."""
