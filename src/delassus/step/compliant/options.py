"""Options of `compliant_step` and `compliant_system`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from delassus.common.checks import one_of
from delassus.common.options import Options
from delassus.contact.cones.parameters import ContactParameters
from delassus.contact.solvers.options import SolverOptions
from delassus.errors import BadArgument, short
from delassus.step.compliant.inputs import IMPACTS, STABILIZATIONS
from delassus.step.laws.inputs import ContactPlanes
from delassus.step.laws.options import RowOptions


@dataclass(frozen=True, eq=False)
class SchemeOptions(Options):
    """The time-stepping scheme.

    Attributes:
        alpha: (…) blend of spring and damper forces: 1 is implicit and dissipates energy, ½ conserves it, 0 is
            explicit. 1 by default.
        beta: (…) blend of positions: q⁺ = q ⊕ h ((1-β) v + β v⁺). The center of mass of a free body moves on a
            straight line (see `manifold_step`). 1 by default; ½ if all forces are smooth (see `midpoint`).
        stabilization: Correction of position errors: "none" by the velocity equation of rigid rows; "pre" or "post" by
            a separate correction before or after the step, which does not change velocities; "project" by `project`.
        midpoint: Whether inertias, rows and velocity products are evaluated in the middle of the step, which a first
            step predicts. It doubles the work; with α = β = ½, the order is two instead of one. If α and β are None,
            too, the default depends on the forces: True with β = ½ if all are smooth (springs, dampers, servos, elastic
            rows), False with β = 1 if there are rigid rows, driven joints, contacts, limits or joint friction.
        impacts: Law of impacts with restitution: "newton" reverses the normal velocity of each contact, reduced where
            this would add energy; "reflections" lets the impact propagate from contact to contact (see `reflections`).

    >>> dl.stepping.SchemeOptions(alpha=0.5, beta=0.5).alpha
    0.5
    """

    alpha: Any = None
    beta: Any = None
    stabilization: str = "none"
    midpoint: bool | None = None
    impacts: str = "newton"

    def __post_init__(self) -> None:
        one_of("stabilization", self.stabilization, STABILIZATIONS)
        one_of("impacts", self.impacts, IMPACTS)
        if self.midpoint is not None and not isinstance(self.midpoint, bool | int | np.bool_):
            raise BadArgument(
                f"midpoint is {short(repr(self.midpoint))}; it must be True or False.", code="not-a-boolean"
            )

    @property
    def is_default(self) -> bool:
        """Whether α, β and midpoint are all None, so that the forces determine them."""
        return self.alpha is None and self.beta is None and self.midpoint is None


@dataclass(frozen=True, eq=False)
class ServoOptions(Options):
    """Position servos of the joints: τ = -K (q ⊖ target) - D v, integrated implicitly.

    Attributes:
        stiffness: (…, nv) K [N·m/rad, N/m].
        damping: (…, nv) D [N·m·s/rad, N·s/m].
        target: (…, nq) target configuration [rad, m].

    >>> dl.stepping.ServoOptions(stiffness=200.0, damping=10.0).stiffness
    200.0
    """

    keywords: ClassVar[Mapping[str, str]] = {
        "stiffness": "servo_stiffness",
        "damping": "servo_damping",
        "target": "servo_target",
    }
    stiffness: Any = None
    damping: Any = None
    target: Any = None


@dataclass(frozen=True, eq=False)
class ElementOptions(Options):
    """Elastic constraints, servos and driven joints, in addition to the springs and dampers of the model.

    Attributes:
        compliance: C [m/N, rad/(N·m)] of constraints, which makes them elastic: by name, {"rod": 1e-6}, one value for
            all constraints, or one for each row (…, m). Names or indices select rows, {"bushing": {"rx": 1e-3}}, and
            the others stay rigid. 0 is the limit of stiff springs, and inf is a damper without a spring. A constraint
            may have a symmetric matrix (…, k, k), {"bushing": C}, which couples its rows.
        damping: B [N·s/m, N·m·s/rad] of elastic constraints, in the same forms except matrices.
        servos: Position servos of the joints.
        driven: Prescribed velocities of joints after the step, by name: {"crank": 2.0}; 0 locks a joint.
        geometric_stiffness: (…, m) impulses of the previous step [N·s], whose geometric stiffness is added to W
            (see `geometric`).

    >>> dl.stepping.ElementOptions(driven={"crank": 2.0}).driven
    {'crank': 2.0}
    """

    compliance: Any = None
    damping: Any = None
    servos: ServoOptions = field(default=ServoOptions())
    driven: Any = None
    geometric_stiffness: Any = None


@dataclass(frozen=True, eq=False)
class SystemOptions(Options):
    """Options of the system of a step.

    Attributes:
        scheme: The time-stepping scheme.
        elements: Elastic constraints, servos and driven joints.
        contact: Friction, torsional and rolling friction, restitution and compliance that override those of the
            contacts, as for `contact_dynamics`.
        planes: Normals and heights that override those of contacts with the world.
        rows: Whether joints have limits and friction.
        time: (…) time of moving references [s]; required if there are any.
        parameters: (…, nparameters) parameters of a parametric model.

    >>> dl.stepping.SystemOptions().scheme.stabilization
    'none'
    """

    keywords: ClassVar[Mapping[str, str]] = {"contact.compliance": "contact_compliance"}
    scheme: SchemeOptions = field(default=SchemeOptions())
    elements: ElementOptions = field(default=ElementOptions())
    contact: ContactParameters = field(default=ContactParameters())
    planes: ContactPlanes = field(default=ContactPlanes())
    rows: RowOptions = field(default=RowOptions())
    time: Any = None
    parameters: Any = None


@dataclass(frozen=True, eq=False)
class CompliantOptions(SystemOptions):
    """Options of `compliant_step`: those of the system of a step, and the solver.

    Attributes:
        solver: Method, tolerance, iterations and warm start of the impulses. The method "auto" uses sweeps over the
            tree. "ldl", "cg", "minres", "gauss_seidel", "pgs" and "sequential_impulses" solve the formed system (see
            `compliant_system`). Methods of `ContactProblem.solve` are also available.

    >>> dl.stepping.CompliantOptions().solver.method
    'auto'
    """

    solver: SolverOptions = field(default=SolverOptions())


@dataclass(frozen=True, eq=False)
class SystemForm(Options):
    """The unknowns of a system.

    Attributes:
        form: "velocity", x = v⁺; "variation", x = v⁺ - v; "acceleration", x = (v⁺ - v)/h, and λ are forces.
        phase: "dynamics", or "correction", whose x corrects position errors and does not change velocities.

    >>> dl.stepping.SystemForm(form="acceleration").form
    'acceleration'
    """

    form: str = "velocity"
    phase: str = "dynamics"

    def __post_init__(self) -> None:
        one_of("form", self.form, ("velocity", "variation", "acceleration"))
        one_of("phase", self.phase, ("dynamics", "correction"))
