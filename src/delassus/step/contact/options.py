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
    """What touches and what rests, where there is no step of time to tell.

    Attributes:
        rest_gap: [m] points that are nearer to their plane touch it.
        rest_speed: [m/s] points that are slower rest.

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
    """The contact problem of a step besides state and contacts.

    Attributes:
        contact: Friction (…, points), torsional and rolling friction (…, points that have it) [m], restitution
            (…, points) and compliance (…, points) [m/N] instead of the contacts' own.
        planes: Normals (…, points, 3) or (…, 1, 3) and heights (…, points) [m] of the planes of contacts with the
            world, instead of their own.
        rows: Whether joints have limits and friction.
        stabilization: (…) the share of penetrations, and of errors of constraints without gains, that a step takes
            back, from 0 to 1.
        time: (…) [s] what references move with, needed where they do.
        parameters: (…, nparameters) those of a mechanism whose model has some.

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
    """Options of `contact_dynamics`: a problem, how it is solved, and what rests.

    Attributes:
        solver: How impulses are solved for.
        rest: What touches and rests (without a step of time).

    >>> dl.contact.ContactOptions(solver=dl.contact.SolverOptions(tolerance=1e-10)).solver.tolerance
    1e-10
    """

    solver: SolverOptions = field(default=SolverOptions())
    rest: RestThresholds = field(default=RestThresholds())


@dataclass(frozen=True, eq=False)
class ExplanationOptions(Options):
    """What the motors can do, and how forces are told by a motion.

    Attributes:
        yielding: R [1/kg], one number or (…, m), by which all rows give way; None for rigid rows.
        passive: (nv,) not zero for velocities without a motor; by default those of free joints.
        tau: (…, nv) generalized forces of passive velocities, where they are known [N·m, N], such as `passive_forces`;
            by default none.
        rest_speed: [m/s] contacts that open more slowly push, and those that slide more slowly stick.

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
    """Options of `contact_inverse_dynamics`: a problem, how it is solved, and what the motors can do.

    Attributes:
        solver: How forces are solved for; it starts from none.
        explanation: What the motors can do.

    >>> dl.contact.ContactInverseOptions().solver.method
    'auto'
    """

    solver: SolverOptions = field(default=SolverOptions())
    explanation: ExplanationOptions = field(default=ExplanationOptions())
