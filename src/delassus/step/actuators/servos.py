"""Motors and servos for models without actuators."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from delassus.common.checks import POSITIVE, Range, number_in_range
from delassus.common.names import find_by_pattern, name_patterns
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.errors import BadArgument, expect
from delassus.model.model import Model
from delassus.model.parts import Joint
from delassus.model.transmission import STATELESS, Actuator

_GAINS: Final = Range(0.0, math.inf, "finite and not negative", open_above=True)


def position_servos(
    model: Model | Mechanism, stiffness: float, damping: float, joints: str | Iterable[str] = "*"
) -> tuple[Actuator, ...]:
    """An actuator for each joint of one coordinate: f = stiffness (u - q) - damping v, within the joint's effort limit.

    Args:
        model: The robot.
        stiffness: [N·m/rad, N/m].
        damping: [N·m·s/rad, N·s/m].
        joints: Names or patterns of joints, such as "*_knee".

    >>> len(dl.simulation.position_servos(dl.load("quadruped"), stiffness=200.0, damping=10.0))
    12
    """
    _check_gains(stiffness=stiffness, damping=damping)
    return tuple(
        _servo(joint, (stiffness, 0.0, 0.0), (0.0, -stiffness, -damping)) for joint in _servo_joints(model, joints)
    )


def velocity_servos(
    model: Model | Mechanism, damping: float, joints: str | Iterable[str] = "*"
) -> tuple[Actuator, ...]:
    """An actuator for each joint of one coordinate: f = damping (u - v), within the joint's effort limit.

    >>> len(dl.simulation.velocity_servos(dl.load("cart_pole"), damping=10.0, joints="cart*"))
    1
    """
    _check_gains(damping=damping)
    return tuple(_servo(joint, (damping, 0.0, 0.0), (0.0, 0.0, -damping)) for joint in _servo_joints(model, joints))


def motors(model: Model | Mechanism, joints: str | Iterable[str] = "*") -> tuple[Actuator, ...]:
    """An actuator for each joint of one coordinate: f = u, within the joint's effort limit.

    >>> len(dl.simulation.motors(dl.load("quadruped")))
    12
    """
    return tuple(_servo(joint, (1.0, 0.0, 0.0), (0.0, 0.0, 0.0)) for joint in _servo_joints(model, joints))


def with_lag(actuators: Iterable[Actuator], time_constant: float) -> tuple[Actuator, ...]:
    """Actuators with a first-order lag, ȧ = (u - a)/T: the activation a is the input of their force law.

    The activations are `state.activation`. To start without a transient, set them to the first control:
    `sim.start(q0, activation=u0)`.

    Args:
        actuators: Actuators without a state, such as those of `position_servos`.
        time_constant: T [s], after which an activation has covered 63 % of a step of the control.

    >>> len(dl.simulation.with_lag(dl.simulation.motors(dl.load("pendulum")), time_constant=0.05))
    1
    """
    T = number_in_range("the time constant of a lag", time_constant, POSITIVE)
    actuators = tuple(actuators) if np.iterable(actuators) else (actuators,)
    for actuator in actuators:
        expect("each of actuators", actuator, Actuator, "one of motors(robot)")
        if actuator.dynamics != STATELESS:
            raise BadArgument(
                f"the actuator {actuator.name!r} has the dynamics {actuator.dynamics!r} already: it cannot have a lag.",
                code="conflicting-arguments",
            )
    return tuple(replace(a, dynamics="filterexact", dynamics_parameters=(T,), kind="filterexact") for a in actuators)


def _check_gains(**gains: Any) -> None:
    for name, gain in gains.items():
        number_in_range(f"the {name}", gain, _GAINS)


def _servo_joints(model: Model | Mechanism, patterns: str | Iterable[str]) -> list[Joint]:
    robot: Any = getattr(model, "model", model)
    expect("the model", robot, Model, 'load("quadruped")')
    candidates = [joint for joint in robot.joints if joint.mimic is None and joint.kind.nv == 1]
    result: list[Joint] = []
    for pattern in name_patterns("joints", patterns):
        matches = find_by_pattern("joint of one coordinate that matches", pattern, candidates, code="unknown-joint")
        result += [joint for joint in matches if joint not in result]
    return result


def _servo(joint: Joint, gain: tuple[float, float, float], bias: tuple[float, float, float]) -> Actuator:
    limited = bool(joint.effort_limit) and math.isfinite(joint.effort_limit[0])
    limit = joint.effort_limit[0] if limited else math.inf
    return Actuator(joint.name, "joint", joint.name, gain, bias, force_range=(-limit, limit) if limited else ())
