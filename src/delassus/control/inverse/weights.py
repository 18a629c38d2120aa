"""Optional inputs of inverse dynamics: active rows, external forces, weights and targets."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy

from delassus.common.checks import real_array
from delassus.compiler.host.inputs import Bundle, Input
from delassus.constrained.rows.inputs import TIME, not_negative, per_row
from delassus.control.inverse.actuation import ActuationError
from delassus.control.inverse.distribution import Choice


def per_actuator(name: str, positive: bool = False) -> Input:
    """An input with one value for each actuator, or one for all."""

    def read(robot: Any, value: Any) -> Any:
        values = real_array(name, value, "one number, or one for each actuator")
        if values.ndim and values.shape[-1] != robot.nu:
            raise ActuationError(
                f"{name} has shape {values.shape}; its last axis must have one value for each of the {robot.nu} "
                "actuators.",
                code="wrong-shape",
            )
        if positive and numpy.any(values <= 0.0):
            raise ActuationError(
                f"{name} is {numpy.min(values):g}; weights of actuators must be positive.", code="out-of-range"
            )
        return values if values.ndim else numpy.full(robot.nu, values)

    return Input("(nu)", read=read)


class InverseInputs(NamedTuple):
    """Run-time inputs of inverse dynamics besides the motion; None for the defaults.

    Attributes:
        mask: (…, m) nonzero for active rows; by default all.
        time: (…) [s] time of moving references, required if there are any.
        tau: (…, nv) other generalized forces on the robot [N·m, N], in addition to springs and dampers.
        torque_weight: (…, nu) Σ w (u - u*)² is minimized.
        torque_target: (…, nu) u* [N·m, N], by default zero.
        force_weight: (…, m) Σ w (λ - λ*)² is minimized.
        force_target: (…, m) λ* [N, N·m], by default zero.
        rank: (…) squared singular values of K below this fraction of the largest count as zero; 1e-12 by default.

    >>> dl.control.InverseInputs(rank=1e-10).rank
    1e-10
    """

    mask: Any = None
    time: Any = None
    tau: Any = None
    torque_weight: Any = None
    torque_target: Any = None
    force_weight: Any = None
    force_target: Any = None
    rank: Any = None

    @property
    def choice(self) -> Choice:
        """Weights and targets."""
        return Choice(self.torque_weight, self.torque_target, self.force_weight, self.force_target)


NO_INPUTS: Final = InverseInputs()

_INPUTS: Final = {
    "mask": per_row("mask"),
    "time": TIME,
    "tau": Input("(nv)"),
    "torque_weight": per_actuator("torque_weight", positive=True),
    "torque_target": per_actuator("torque_target"),
    "force_weight": per_row("force_weight", 0.0),
    "force_target": per_row("force_target"),
}
TASK_INPUTS: Final = Bundle(InverseInputs, **_INPUTS)
"""Inputs of inverse dynamics of tasks."""
INVERSE_INPUTS: Final = Bundle(InverseInputs, **_INPUTS, rank=not_negative("rank", 1.0))
"""Inputs of inverse dynamics."""
