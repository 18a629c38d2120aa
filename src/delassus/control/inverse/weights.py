"""What inverse dynamics can be given besides a motion: which rows act, other forces, weights and targets."""

from __future__ import annotations

from typing import Any, Final

import numpy

from delassus.common.checks import real_array
from delassus.compiler.host.inputs import Input
from delassus.constrained.rows.inputs import TIME, per_row
from delassus.control.inverse.actuation import ActuationError


def per_actuator(name: str, positive: bool = False) -> Input:
    """An input with a number for each actuator, or one for all."""

    def read(robot: Any, value: Any) -> Any:
        numbers = real_array(name, value, "one number, or one for each actuator")
        if numbers.ndim and numbers.shape[-1] != robot.nu:
            raise ActuationError(
                f"{name} has shape {numbers.shape}; its last axis has one number for each of the {robot.nu} actuators.",
                code="wrong-shape",
            )
        if positive and numpy.any(numbers <= 0.0):
            raise ActuationError(
                f"{name} is {numpy.min(numbers):g}; weights of actuators are positive.", code="out-of-range"
            )
        return numbers if numbers.ndim else numpy.full(robot.nu, numbers)

    return Input("(nu)", read=read)


DYNAMICS_INPUTS: Final = {
    "mask": per_row("mask"),
    "time": TIME,
    "tau": Input("(nv)"),
    "torque_weight": per_actuator("torque_weight", positive=True),
    "torque_target": per_actuator("torque_target"),
    "force_weight": per_row("force_weight", 0.0),
    "force_target": per_row("force_target"),
}
"""Optional inputs of inverse dynamics."""
