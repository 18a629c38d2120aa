"""`compliant_step`: one step of time of a robot with springs, dampers, constraints and contacts, for users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import one_of
from delassus.common.outcomes import Outcome, worst_of
from delassus.constrained.rows.counts import whole
from delassus.constrained.solvers.status import Status
from delassus.contact.solvers.registry import solver_names
from delassus.contact.solvers.sequential_impulses import RowsOnVelocities
from delassus.contact.systems.scaled import CAPABILITIES as COMPILED
from delassus.errors import short
from delassus.step.compliant.asked import (
    StepError,
    batch_of,
    check_impacts,
    has_smooth_forces,
    prepared,
    solver_numbers,
)
from delassus.step.compliant.inputs import structured_step
from delassus.step.compliant.kernel import compliant_kernel
from delassus.step.compliant.system import SOLVERS, check_rows
from delassus.step.impacts.dissipation import lowered_restitution
from delassus.step.scene import Scene

Array = NDArray[np.float64]

METHODS: Final = ("auto", *SOLVERS, *(name for name in solver_names(COMPILED) if name not in ("auto", *SOLVERS)))
"""Of the impulses."""


@dataclass(frozen=True, eq=False)
class CompliantStep(Outcome):
    """A robot after a step of time, one state or a batch.

    Attributes:
        scene: The robot, its contacts and its other rows.
        time_step: (…) h [s].
        q: (…, nq) configurations after the step [rad, m].
        v: (…, nv) velocities after the step [rad/s, m/s], with the energy and momentum that its impulses allow.
        impulse: (…, m) of all rows [N·s, N·m·s]: contacts (t1, t2, n), constraints, limits, dry friction.
        residuals: (…, m) what is left of J v⁺ + R λ + b [m/s, rad/s].
        gap: (…, points) as the step begins [m].
        iterations: (…) of the contact solver.
        status: (…) numbers of `Status`.
        restitution_share: (…) the share of restitution that contacts are thrown back with: less than 1 where more would
            have added energy. Residuals are those of the rows with this share.
        system_velocity: (…, nv) the velocities that solve the system of the step, W v⁺ = c + Jᵀ λ, in the axes and
            inertias of its beginning, or of its middle; `v` where nothing turns.
    """

    status_type: ClassVar = Status

    scene: Scene
    time_step: Array
    q: Array
    v: Array
    impulse: Array
    residuals: Array
    gap: Array
    iterations: NDArray[np.int64]
    status: NDArray[np.int64]
    restitution_share: Array
    system_velocity: Array

    @property
    def energy_limited(self) -> Any:
        """(…) whether restitution was lowered, since with friction it would have added energy."""
        return np.asarray(self.restitution_share) < 1.0

    @property
    def force(self) -> Array:
        """(…, m) the mean forces of the step [N, N·m]: impulses over h."""
        return np.asarray(self.impulse / np.asarray(self.time_step)[..., None])

    @property
    def forces(self) -> Mapping[str, Array]:
        """Views of `force` by the names of contacts, constraints and joints."""
        force = self.force
        return {name: force[..., rows] for name, rows in self.scene.row_mechanism.slices.items()}

    @property
    def residual(self) -> Any:
        """(…) the largest residual of a row."""
        return np.abs(self.residuals).max(-1) if self.scene.m else np.zeros(np.shape(self.status))

    def describe(self) -> str:
        """How it ended, in a sentence: of the worst state, where there are several."""
        if not np.size(self.status):
            return "There is no state."
        worst = worst_of(Status, np.asarray(self.status))
        counted = (
            f", in {np.sum(self.status == worst)} of {np.size(self.status)} states" if np.ndim(self.status) else ""
        )
        return f"{worst.sentence[:-1]}{counted}.{lowered_restitution(self.energy_limited)}"


def compliant_step(
    mechanism: Any,
    q: Any,
    v: Any,
    tau: Any,
    *,
    time_step: Any,
    alpha: Any = None,
    beta: Any = None,
    compliance: Any = None,
    damping: Any = None,
    servo_stiffness: Any = None,
    servo_damping: Any = None,
    servo_target: Any = None,
    driven: Any = None,
    contacts: Any = (),
    friction: Any = None,
    torsional: Any = None,
    rolling: Any = None,
    restitution: Any = None,
    normal: Any = None,
    height: Any = None,
    limits: bool = False,
    joint_friction: bool = False,
    stabilization: str = "none",
    midpoint: bool | None = None,
    impacts: str = "newton",
    geometric_stiffness: Any = None,
    method: str = "auto",
    tolerance: float = 1e-8,
    iterations: int = 1000,
    start: Any = None,
    time: Any = None,
    parameters: Any = None,
) -> CompliantStep:
    """Configurations and velocities after a step of time, of one state or a batch, and the impulses of the rows.

    Springs and dampers of the model's joints and of tendons over them, servos, and constraints that are given a
    compliance are integrated implicitly, as far as α and β say, whatever their stiffness. Constraints without are
    kinematic: rigid. Contacts, limits and dry friction are solved for together with them. The model's own springs and
    dampers act by themselves: leave `passive_forces` out of tau.

    Args:
        mechanism: The robot with its constraints, or a model.
        q: Configurations (…, nq) [rad, m].
        v: Velocities (…, nv) [rad/s, m/s].
        tau: Generalised forces (…, nv) [N·m, N], constant during the step.
        time_step: (…) h [s].
        alpha: (…) how implicit forces of springs and dampers are: 1 damps, ½ conserves, 0 is explicit. 1 by default.
        beta: (…) how implicit positions are: q⁺ = q ⊕ h ((1-β) v + β v⁺); what flies goes straight on (see `flying`).
            1 by default; ½ where all forces are smooth (see `midpoint`).
        compliance: C [m/N, rad/(N·m)] of constraints, which makes them elastic: by name, {"rod": 1e-6}, one number for
            all constraints, or one for each row (…, m). By the names or numbers of rows, {"bushing": {"rx": 1e-3}}, the
            others stay rigid. 0 is the limit of stiff springs, inf a damper alone. A constraint may have a symmetric
            matrix (…, k, k), {"bushing": C}, whose rows yield to each other's forces.
        damping: B [N·s/m, N·m·s/rad] of elastic constraints, likewise.
        servo_stiffness: (…, nv) of servos in the joints [N·m/rad, N/m].
        servo_damping: (…, nv) of servos in the joints [N·m·s/rad, N·s/m].
        servo_target: (…, nq) where servos pull to [rad, m].
        driven: Velocities after the step of joints that no force changes, by name: {"crank": 2.0}; 0 locks a joint.
        contacts: Where it may touch: some `Contact`. Its compliance makes it elastic.
        friction, torsional, rolling, restitution, normal, height: Numbers of contacts instead of their own, as for
            `contact_dynamics`.
        limits: Whether joints end at their limits.
        joint_friction: Whether joints have the dry friction of the model.
        stabilization: How errors of position are taken off: "none" by velocities that kinematic rows ask for; "pre" or
            "post" by a motion of its own before or after, that leaves velocities alone; "project" by `project`.
        midpoint: Whether inertias, rows and velocity products are those of the middle of the step, which a first step
            finds. Twice the work; with α = β = ½, second order instead of first. By default, where α and β are left
            out, too, it is on and β = ½ if all forces are smooth: springs, dampers, servos and elastic rows, but
            neither rigid rows, driven joints, contacts, limits nor dry friction, with which it is off and β = 1.
        impacts: How contacts with restitution strike: "newton", each is thrown back by its own speed, as far as that
            adds no energy, or "reflections", in the order in which a blow travels (see `reflections`).
        geometric_stiffness: (…, m) impulses of the step before [N·s], whose forces turn with the robot; implicit, then.
        method: "auto" for sweeps over the tree; solvers of the system that is formed, "ldl", "cg", "minres",
            "gauss_seidel", "pgs", "sequential_impulses" (see `compliant_system`); or one of `ContactProblem.solve`.
        tolerance: As for `contact_dynamics`.
        iterations: As for `contact_dynamics`.
        start: (…, m) impulses to start from [N·s], such as those of the step before.
        time: (…) [s] what references move with, needed where they do.
        parameters: (…, nparameters) those of a mechanism whose model has some.
    """
    default = alpha is None and beta is None and midpoint is None
    asked = prepared(
        mechanism,
        time_step=time_step,
        alpha=1.0 if alpha is None else alpha,
        beta=1.0 if beta is None else beta,
        compliance=compliance,
        damping=damping,
        servo_stiffness=servo_stiffness,
        servo_damping=servo_damping,
        servo_target=servo_target,
        driven=driven,
        contacts=contacts,
        friction=friction,
        torsional=torsional,
        rolling=rolling,
        restitution=restitution,
        normal=normal,
        height=height,
        limits=limits,
        joint_friction=joint_friction,
        stabilization=stabilization,
        geometric_stiffness=geometric_stiffness,
        time=time,
        parameters=parameters,
        batch=batch_of(q, v, tau, time_step),
    )
    one_of("method", method, METHODS, code="unknown-method")
    check_impacts(impacts)
    scene, numbers = asked.scene, asked.numbers
    if default and has_smooth_forces(asked):
        numbers, midpoint = numbers | {"alpha": np.array(1.0), "beta": np.array(0.5)}, True
    check_rows(RowsOnVelocities(scene.layout.cones, scene.nv), method)
    solving = solver_numbers(scene, tolerance, iterations, start)
    if method != "auto" or scene.points or scene.stops or scene.friction_bounds:
        numbers = numbers | solving
    rubbing = {} if not scene.points else asked.rubbing
    if midpoint is not None and not isinstance(midpoint, bool | int | np.bool_):
        raise StepError(f"midpoint is {short(repr(midpoint))}; it is True or False.", code="not-a-boolean")
    fixed: dict[str, Any] = {"stabilization": stabilization, "midpoint": bool(midpoint), "impacts": impacts}
    inputs = structured_step(numbers | rubbing)
    found = compliant_kernel(scene, q, v, tau, asked.step, **inputs, **asked.fixed, **fixed, method=method)
    ended = whole(found.iterations), whole(found.status), found.restitution_share, found.system_velocity
    return CompliantStep(scene, asked.step, found.q, found.v, found.impulse, found.residual, found.gap, *ended)
