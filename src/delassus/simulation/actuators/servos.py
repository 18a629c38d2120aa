"""Motors and servos for models that have none."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterable
from typing import Any

from delassus.errors import expect, short
from delassus.model.model import Joint, Model, UnknownName
from delassus.model.transmission import Actuator
from delassus.simulation.actuators.checks import ActuatorError


def position_servos(
    model: Any, stiffness: float, damping: float, joints: str | Iterable[str] = "*"
) -> tuple[Actuator, ...]:
    """An actuator for each joint of one coordinate: f = stiffness (u - q) - damping v, within the joint's effort limit.

    Args:
        model: The robot.
        stiffness: [N·m/rad, N/m].
        damping: [N·m·s/rad, N·s/m].
        joints: Names or patterns of joints, such as "*_knee".
    """
    _check_gains(stiffness=stiffness, damping=damping)
    return tuple(
        _servo(joint, (stiffness, 0.0, 0.0), (0.0, -stiffness, -damping)) for joint in _servo_joints(model, joints)
    )


def velocity_servos(model: Any, damping: float, joints: str | Iterable[str] = "*") -> tuple[Actuator, ...]:
    """An actuator for each joint of one coordinate: f = damping (u - v), within the joint's effort limit."""
    _check_gains(damping=damping)
    return tuple(_servo(joint, (damping, 0.0, 0.0), (0.0, 0.0, -damping)) for joint in _servo_joints(model, joints))


def motors(model: Any, joints: str | Iterable[str] = "*") -> tuple[Actuator, ...]:
    """An actuator for each joint of one coordinate: f = u, within the joint's effort limit."""
    return tuple(_servo(joint, (1.0, 0.0, 0.0), (0.0, 0.0, 0.0)) for joint in _servo_joints(model, joints))


def _check_gains(**gains: Any) -> None:
    for name, gain in gains.items():
        try:
            value = math.nan if isinstance(gain, (str, bytes, bool)) else float(gain)
        except (TypeError, ValueError, OverflowError):
            value = math.nan
        if not 0.0 <= value < math.inf:
            raise ActuatorError(f"the {name} is {short(repr(gain))}; it is finite and not negative.")


def _servo_joints(model: Any, patterns: str | Iterable[str]) -> list[Joint]:
    model = getattr(model, "model", model)
    expect("the model", model, Model, 'load("quadruped")')
    try:
        several: tuple[Any, ...] = (patterns,) if isinstance(patterns, str) else tuple(patterns)
    except TypeError:  # it has no elements
        several = (patterns,)
    every = [joint for joint in model.joints if joint.mimic is None and joint.kind.nv == 1]
    found = []
    for pattern in several:
        if not isinstance(pattern, str):
            raise ActuatorError(f"joints has {short(repr(pattern))}; it is a name or pattern, or several of them.")
        matching = [joint for joint in every if fnmatch.fnmatchcase(joint.name, pattern)]
        if not matching:
            raise UnknownName("joint of one coordinate that matches", pattern, [joint.name for joint in every])
        found += [joint for joint in matching if joint not in found]
    return found


def _servo(joint: Joint, gain: tuple[float, float, float], bias: tuple[float, float, float]) -> Actuator:
    limited = bool(joint.effort_limit) and math.isfinite(joint.effort_limit[0])
    most = joint.effort_limit[0] if limited else math.inf
    return Actuator(joint.name, "joint", joint.name, gain, bias, force_range=(-most, most) if limited else ())
