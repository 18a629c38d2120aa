"""Options of `contact_dynamics`, `contact_problem` and `contact_inverse_dynamics`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from delassus.common.checks import NOT_NEGATIVE, number_in_range
from delassus.common.options import Options
from delassus.contact.cones.parameters import ContactParameters
from delassus.contact.solvers.options import SolverOptions
from delassus.step.laws.inputs import ContactPlanes
from delassus.step.laws.options import RowOptions


@dataclass(frozen=True, eq=False)
class RestThresholds(Options):
    """Thresholds below which contacts count as closed and at rest, if there is no time step.

    Attributes:
        rest_gap: Contacts with a smaller gap [m] are closed.
        rest_speed: Contacts with a smaller speed [m/s] are at rest.

    >>> dl.contact.RestThresholds(rest_gap=1e-4).rest_gap
    0.0001
    """

    rest_gap: float = 1e-6
    rest_speed: float = 1e-6

    def __post_init__(self) -> None:
        for name in ("rest_gap", "rest_speed"):
            object.__setattr__(self, name, number_in_range(name, getattr(self, name), NOT_NEGATIVE))


@dataclass(frozen=True, eq=False)
class ProblemOptions(Options):
    """Options of the contact problem of a step.

    Attributes:
        contact: Friction (…, points), torsional and rolling friction (…, points that have it) [m], restitution
            (…, points) and compliance (…, points) [m/N], which override those of the contacts.
        planes: Normals (…, points, 3) or (…, 1, 3) and heights (…, points) [m], which override those of contacts with
            the world.
        rows: Whether joints have limits and friction.
        stabilization: (…) fraction of penetrations, and of errors of constraints without gains, that a step removes,
            from 0 to 1.
        time: (…) time of moving references [s]; required if there are any.
        parameters: (…, nparameters) parameters of a parametric model.

    >>> dl.contact.ProblemOptions(stabilization=0.2).stabilization
    0.2
    """

    contact: ContactParameters = field(default=ContactParameters())
    planes: ContactPlanes = field(default=ContactPlanes())
    rows: RowOptions = field(default=RowOptions())
    stabilization: Any = 0.0
    time: Any = None
    parameters: Any = None


@dataclass(frozen=True, eq=False)
class ContactOptions(ProblemOptions):
    """Options of `contact_dynamics`: the problem, its solver, and thresholds of rest.

    Attributes:
        solver: Solver of the impulses.
        rest: Thresholds of touching and resting, if there is no time step.

    >>> dl.contact.ContactOptions(solver=dl.contact.SolverOptions(tolerance=1e-10)).solver.tolerance
    1e-10
    """

    solver: SolverOptions = field(default=SolverOptions())
    rest: RestThresholds = field(default=RestThresholds())


@dataclass(frozen=True, eq=False)
class ExplanationOptions(Options):
    """Which velocities have motors, and how contact forces are determined from a motion.

    Attributes:
        yielding: Compliance R of all rows [1/kg], one value or (…, m); None for rigid rows.
        passive: (nv,) nonzero for velocities without a motor; by default those of free joints.
        tau: (…, nv) known generalized forces at velocities without a motor [N·m, N], such as `passive_forces`;
            by default zero.
        rest_speed: [m/s] contacts that open more slowly count as closed, and those that slide more slowly as sticking.

    >>> dl.contact.ExplanationOptions(rest_speed=1e-4).rest_speed
    0.0001
    """

    yielding: Any = None
    passive: Any = None
    tau: Any = None
    rest_speed: float = 1e-6

    def __post_init__(self) -> None:
        object.__setattr__(self, "rest_speed", number_in_range("rest_speed", self.rest_speed, NOT_NEGATIVE))


@dataclass(frozen=True, eq=False)
class ContactInverseOptions(ProblemOptions):
    """Options of `contact_inverse_dynamics`: the problem, its solver, and the motors.

    Attributes:
        solver: Solver of the forces, without a warm start.
        explanation: Which velocities have motors, and the compliance of rows.

    >>> dl.contact.ContactInverseOptions().solver.method
    'auto'
    """

    solver: SolverOptions = field(default=SolverOptions())
    explanation: ExplanationOptions = field(default=ExplanationOptions())
