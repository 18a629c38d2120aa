"""Ranges of actuator forces, joint positions and joint velocities."""

from __future__ import annotations

from typing import Any

import numpy

from delassus.control.inverse.actuated import ActuatedMechanism
from delassus.model.model import Model
from delassus.model.transmission import Actuator


def torque_limits(actuated: ActuatedMechanism) -> tuple[numpy.ndarray[Any, Any], numpy.ndarray[Any, Any]]:
    """(nu,) lower and upper limits of each actuator's force [N·m, N], infinite without a limit.

    The intersection of the limits of its joint, its own force range, and for a motor that of its control.
    """
    model, B = actuated.mechanism.plain.model, actuated.B
    effort = numpy.asarray(model.effort_limit)
    most = numpy.full(actuated.nu, numpy.inf)
    for v, k in numpy.argwhere(B):
        most[k] = min(most[k], effort[v] / abs(B[v, k]))
    lower, upper = -most, most.copy()
    actuators = {actuator.name: actuator for actuator in model.actuators}
    for k, name in enumerate(actuated.names):
        for low, high in _forces(actuators[name]) if name in actuators else ():
            lower[k], upper[k] = max(lower[k], low), min(upper[k], high)
    return lower, upper


def _forces(actuator: Actuator) -> list[tuple[float, float]]:
    """The ranges of an actuator's force."""
    gain, *bias = actuator.gain
    ranges = [actuator.force_range] if actuator.force_range else []
    if actuator.control_range and not any((*bias, *actuator.bias)):
        ranges.append(tuple(gain * u for u in actuator.control_range))
    return [(min(ends), max(ends)) for ends in ranges]


def limited_joints(model: Model) -> list[tuple[str, int, int]]:
    """Name, coordinate and velocity of joints with one coordinate and limits of position or velocity."""
    joints = []
    for joint, i, j in zip(model.joints, model.q_starts, model.v_starts, strict=True):
        if joint.mimic is None and joint.kind.nq == joint.kind.nv == 1:
            limits = (model.lower[i], model.upper[i], model.velocity_limit[j])
            if any(numpy.isfinite(x) for x in limits):
                joints.append((joint.name, i, j))
    return joints
