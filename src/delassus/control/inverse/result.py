"""Results and statuses of inverse dynamics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delassus.common.outcomes import Outcome, name_of_row, worst_of
from delassus.common.provenance import Provenance
from delassus.constrained.rows.counts import as_integer
from delassus.control.inverse.actuated import ActuatedMechanism
from delassus.errors import Sentences


class ControlStatus(Sentences):
    """Why inverse dynamics ended; `sentence` describes the status.

    >>> all(status.sentence for status in dl.control.ControlStatus)
    True
    """

    REALISED = 0, "The torques give the motion that was asked for."
    NEAREST = (
        1,
        "No torques give the motion that was asked for; these come nearest, and the residual is what they lack.",
    )
    BREAKS_CONSTRAINTS = (
        2,
        "The acceleration that was asked for breaks the constraints; the torques give the nearest one that does not.",
    )
    NOT_FINITE = 3, "An input is not a finite number, or a result would not be one; the torques are zero."
    ITERATIONS = 4, "The iterations ended before the tolerance was met."
    SINGULAR = 5, "Some rows of the tasks cannot move, or depend on others; what can be done is done without them."

    @classmethod
    def worst_first(cls) -> tuple[ControlStatus, ...]:
        """From the worst to the best."""
        middle = cls.ITERATIONS, cls.NEAREST, cls.SINGULAR, cls.BREAKS_CONSTRAINTS
        return cls.NOT_FINITE, *middle, cls.REALISED


class _Arrays(NamedTuple):
    torque: Any
    force: Any
    residual: Any
    status: Any
    violation: Any


class InverseDynamics(Provenance, Outcome, _Arrays):
    """Torques of actuators and forces of constraints that produce a motion, one state or a batch.

    Attributes:
        torque: (…, nu) forces of the actuators [N·m, N].
        force: (…, m) of the constraints [N, N·m], on the robot, in the axes of each constraint.
        residual: (…, nv) M a + c - B u - tau - Jᵀ λ [N·m, N]: generalized force that neither actuators nor constraints
            can provide; c includes springs and dampers.
        status: (…) values of `ControlStatus`.
        violation: (…, m) J a + γ + C λ [m/s², rad/s²]: constraint violation of the acceleration.
        actuated: The mechanism with its actuators.

    >>> arm, zero = dl.load("double_pendulum"), np.zeros(2)
    >>> isinstance(dl.inverse_dynamics(arm, zero, zero, zero), dl.control.InverseDynamics)
    True
    """

    status_type = ControlStatus
    actuated: ActuatedMechanism

    @classmethod
    def of_call(cls, values: tuple[Any, ...], actuated: ActuatedMechanism, _: Any) -> InverseDynamics:
        """Create from the results of a call."""
        torque, force, residual, status, violation = values
        return cls(torque, force, residual, as_integer(status), violation).with_inputs(actuated=actuated)

    @property
    def torques(self) -> Mapping[str, NDArray[np.float64]]:
        """Views of `torque` by the names of the actuators."""
        return {name: self.torque[..., k] for k, name in enumerate(self.actuated.names)}

    @property
    def forces(self) -> Mapping[str, NDArray[np.float64]]:
        """Views of `force` by the names of the constraints."""
        return {name: self.force[..., rows] for name, rows in self.actuated.mechanism.slices.items()}

    def describe(self) -> str:
        """Describe the result in a sentence or two; for a batch, that of the worst state."""
        worst, text = worst_control(self.status)
        if worst is ControlStatus.NEAREST:
            at, most = largest_entry(self.residual, self.status == worst)
            names = _velocity_names(self.actuated)
            text += f" The largest part is {most:.3g} (N·m or N), at {names[at]}."
        elif worst is ControlStatus.BREAKS_CONSTRAINTS:
            row, most = largest_entry(self.violation, self.status == worst)
            name = name_of_row(self.actuated.mechanism.slices, row)
            text += f" The largest violation is {most:.3g} (m/s² or rad/s²), of {name!r}."
        return text


def worst_control(status: Any) -> tuple[ControlStatus, str]:
    """The worst status of a batch, and a sentence that counts it."""
    if not np.size(status):
        return ControlStatus.REALISED, "There is no state."
    worst = worst_of(ControlStatus, status)
    count_text = f" ({np.sum(status == worst)} of {status.size} states)" if np.size(status) > 1 else ""
    return worst, f"{worst.sentence[:-1]}{count_text}."


def largest_entry(values: Any, among: Any) -> tuple[int, float]:
    """The row of the largest of values (…, rows) among selected states (…), and its magnitude."""
    size = np.where(np.asarray(among)[..., None], np.abs(values), -1.0)
    return int(np.argmax(size)) % size.shape[-1], float(np.max(size))


def _velocity_names(actuated: ActuatedMechanism) -> list[str]:
    names = [""] * actuated.nv
    for joint in actuated.model.joints:
        at = actuated.model.v_slice(joint.name)
        for v in range(at.start, at.stop):
            names[v] = names[v] or joint.name
    return names
