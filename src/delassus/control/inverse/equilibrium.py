"""Equilibrium: torques that hold a posture against gravity with bilateral constraints or contacts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.outcomes import Outcome
from delassus.common.types import ArrayLike
from delassus.constrained.solvers.status import Status
from delassus.constraints.mechanism.mechanism import Robot
from delassus.control.inverse.actuated import ActuatedMechanism, actuated
from delassus.control.inverse.actuation import Actuation, ActuationError
from delassus.control.inverse.dynamics import inverse_dynamics
from delassus.control.inverse.result import ControlStatus, InverseDynamics, worst_control
from delassus.dynamics.forces.passive import passive_forces
from delassus.step.contact.inverse import ContactExplanation, contact_inverse_dynamics
from delassus.step.sources.contact import Contact, contacts_of

Floats = NDArray[np.float64]

_STEP: Final = 1e-3
"""Time step [s]; its value has no effect at rest."""


def gravity_compensation(
    mechanism: Robot | ActuatedMechanism, q: ArrayLike, *, actuation: Actuation | None = None, **options: Any
) -> InverseDynamics:
    """Torques (…, nu) for zero acceleration at rest, and the forces of constraints; see `inverse_dynamics`.

    They balance gravity and springs.

    Args:
        mechanism: The robot and its constraints, a model, or an `ActuatedMechanism`.
        q: Configurations (…, nq) [rad, m].
        actuation: As for `inverse_dynamics`.
        options: mask, time, tau, weights and targets, rank and parameters, as for `inverse_dynamics`.

    >>> dl.control.gravity_compensation(dl.load("double_pendulum"), [0.1, 0.2]).torque.shape
    (2,)
    """
    robot = actuated(mechanism, actuation)
    zero = np.zeros(robot.nv)
    return inverse_dynamics(robot, q, zero, zero, **options)


@dataclass(frozen=True, eq=False)
class Equilibrium(Outcome):
    """Torques and forces of static poses, one or a batch.

    Attributes:
        torque: (…, nu) forces of the actuators [N·m, N].
        force: (…, m) of contacts (t1, t2, n of each point) and constraints [N, N·m], within the friction cones.
        residual: (…, nv) unbalanced generalized force [N·m, N]: zero in an equilibrium.
        status: (…) values of `ControlStatus`: REALISED in an equilibrium.
        explanation: The result of `contact_inverse_dynamics`, with names of rows.

    >>> quadruped = dl.load("quadruped")
    >>> feet = [dl.Contact(foot, friction=0.5, radius=0.02) for foot in quadruped.frames("*_foot")]
    >>> dl.control.equilibrium(quadruped, quadruped.posture("home"), contacts=feet).torque.shape
    (12,)
    """

    status_type: ClassVar = ControlStatus

    torque: Floats
    force: Floats
    residual: Floats
    status: NDArray[np.int64]
    explanation: ContactExplanation

    def describe(self) -> str:
        """Describe the result in a sentence or two; for a batch, that of the worst pose."""
        worst, _ = worst_control(self.status)
        most = float(np.max(np.abs(self.residual), initial=0.0))
        if not np.size(self.status):
            return "There is no pose."
        if worst is ControlStatus.REALISED:
            return "The torques and forces hold the pose."
        if worst is ControlStatus.NEAREST:
            return f"No torques and forces hold the pose within friction; {most:.3g} (N·m or N) are missing at most."
        return worst.sentence


def equilibrium(
    mechanism: Robot | ActuatedMechanism,
    q: ArrayLike,
    *,
    contacts: Contact | Iterable[Contact] = (),
    actuation: Actuation | None = None,
    tolerance: float = 1e-8,
    share: float = 1e-6,
    **options: Any,
) -> Equilibrium:
    """Torques and forces that hold a pose at rest with contacts within friction, of one pose or a batch.

    Contacts, constraints and springs must balance the velocities without actuators; actuators do the rest.

    Args:
        mechanism: The robot with its constraints, a model, or an `ActuatedMechanism`; actuators drive one joint each.
        q: Configurations (…, nq) [rad, m].
        contacts: The candidates: `Contact`s. Those with a gap have no force.
        actuation: As for `inverse_dynamics`.
        tolerance: As for `contact_dynamics`.
        share: Largest accepted unbalanced force, relative to the largest generalized force of gravity.
        options: friction, normal, height, limits and others, as for `contact_inverse_dynamics`; tau (…, nv) are
            generalized forces in addition to the model's springs [N·m, N].

    >>> quadruped = dl.load("quadruped")
    >>> feet = [dl.Contact(foot, friction=0.5, radius=0.02) for foot in quadruped.frames("*_foot")]
    >>> stand = dl.control.equilibrium(quadruped, quadruped.posture("home"), contacts=feet)
    >>> stand.status.item() == dl.control.ControlStatus.REALISED
    True
    """
    robot = actuated(mechanism, actuation)
    contacts = contacts_of(contacts)
    if not contacts and not robot.m and not options.get("limits"):
        raise ActuationError("there are no contacts or constraints; use gravity_compensation.", code="nothing-to-do")
    if not 0.0 <= share < np.inf:
        raise ActuationError(
            f"share is {share!r}; it must not be negative: it is the fraction of the forces that may remain "
            "unbalanced, such as 1e-6.",
            code="out-of-range",
        )
    passive, q = _passive(robot), np.asarray(q, float)
    if q.shape[-1:] != (robot.nq,):
        raise ActuationError(f"q has shape {q.shape}; its last axis must have {robot.nq} values.", code="wrong-shape")
    zero = np.zeros(robot.nv)
    # Poses with NaN are replaced, and their results set to NaN, so that the others are solved.
    finite = np.isfinite(np.sum(q, -1))
    calm = np.where(finite[..., None], q, robot.neutral())
    passive_torque = passive_forces(robot.mechanism.plain.model, calm, zero) + np.asarray(
        options.pop("tau", 0.0), float
    )
    explanation = contact_inverse_dynamics(
        robot.mechanism,
        calm,
        zero,
        zero,
        contacts=contacts,
        time_step=_STEP,
        passive=passive,
        tau=passive_torque,
        tolerance=tolerance,
        **options,
    )
    actuator_torque = explanation.torque - passive_torque
    torque = np.where(finite[..., None], np.matvec(robot.inverse, actuator_torque), 0.0)
    residual = np.where(finite[..., None], actuator_torque * (passive != 0.0), np.nan)
    weight = np.max(np.abs(explanation.torque), -1) + np.max(np.abs(explanation.force), -1, initial=0.0)
    is_held = np.all(np.abs(residual) <= share * weight[..., None], -1) & (explanation.status <= Status.LEAST_SQUARES)
    status = np.where(is_held, ControlStatus.REALISED, ControlStatus.NEAREST)
    status = np.where(explanation.status == Status.ITERATIONS, ControlStatus.ITERATIONS, status)
    status = np.where(finite & (explanation.status != Status.NOT_FINITE), status, ControlStatus.NOT_FINITE)
    force = np.where(finite[..., None], explanation.force, 0.0)
    return Equilibrium(torque, force, residual, np.asarray(status, int), explanation)


def _passive(robot: ActuatedMechanism) -> Floats:
    """1 for velocities without actuators (nv,), otherwise 0."""
    B = robot.B
    if np.any(np.count_nonzero(B, axis=0) != 1) or np.any(np.count_nonzero(B, axis=1) > 1):
        raise ActuationError(
            "the equilibrium under friction needs actuators that drive one joint each, at most one per joint.",
            code="not-supported",
        )
    return np.where(np.any(B != 0.0, axis=1), 0.0, 1.0)
