"""Actuators of a robot: what a control becomes at the joints, and servos for models that have none.

The force of an actuator is affine, f = (g₀ + g₁ l + g₂ l̇) u + b₀ + b₁ l + b₂ l̇ (see `Actuator`). In a step of time it
is that of the step's end: what grows with l and l̇ resists the joint and goes into its own inertia, so that servos of
any stiffness are stable. So do springs and dampers; those of tendons, and actuators that pull tendons, resist several
joints at once. An actuator at its limit pushes with it, and resists nothing; whether it is there is seen at the step's
end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.common.checks import Range, number_in_range
from delassus.common.names import found_by_pattern, name_patterns
from delassus.constrained.elimination.tree_factor import RankOne
from delassus.dynamics.forces.passive import PassiveElements
from delassus.dynamics.kinematics.jacobians import frame_jacobian
from delassus.errors import BadArgument, expect
from delassus.model.joints import Free
from delassus.model.model import Joint, Model
from delassus.model.transmission import Actuator

_ROUNDING: Final = 1e-9
"""Forces that pass a limit by a smaller share of what is between both are at it."""

_GAINS: Final = Range(0.0, math.inf, "finite and not negative", open_above=True)


class ActuatorError(BadArgument):
    """An actuator that cannot be simulated."""


class Drive(NamedTuple):
    """Generalised forces (nv,), what is added to the diagonal of M (nv,) and what couples joints; clipped controls.

    `modes` (servos,) says of each servo with limits whether it is within (0) or at its upper (1) or lower (-1) one, and
    `modes_at` what they are with the velocity (nv,) of the step's end.
    """

    force: Any
    added: Any
    rank_ones: tuple[RankOne, ...]
    clipped: Any
    modes: Any
    modes_at: Callable[[Any], Any]

    def resistance(self, v: Any) -> Any:
        """(M̂ - M) v (nv,)."""
        total = self.added * v
        for term in self.rank_ones:
            total = total + term.times(v)
        return total


def driven_velocities(model: Model) -> tuple[int, ...]:
    """The velocities that a model without actuators takes a torque for: those of its joints, a free base left out."""
    found: list[int] = []
    for joint, start in zip(model.joints, model.v_starts, strict=True):
        if joint.mimic is None and not isinstance(joint.kind, Free):
            found += range(start, start + joint.kind.nv)
    return tuple(found)


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
        number_in_range(f"the {name}", gain, _GAINS)


def _servo_joints(model: Any, patterns: str | Iterable[str]) -> list[Joint]:
    model = getattr(model, "model", model)
    expect("the model", model, Model, 'load("quadruped")')
    every = [joint for joint in model.joints if joint.mimic is None and joint.kind.nv == 1]
    found: list[Joint] = []
    for pattern in name_patterns("joints", patterns):
        chosen = found_by_pattern("joint of one coordinate that matches", pattern, every, code="unknown-joint")
        found += [joint for joint in chosen if joint not in found]
    return found


def _servo(joint: Joint, gain: tuple[float, float, float], bias: tuple[float, float, float]) -> Actuator:
    limited = bool(joint.effort_limit) and math.isfinite(joint.effort_limit[0])
    most = joint.effort_limit[0] if limited else math.inf
    return Actuator(joint.name, "joint", joint.name, gain, bias, force_range=(-most, most) if limited else ())


def check_actuators(model: Model, actuators: tuple[Actuator, ...]) -> None:
    """Raise unless all of them can be simulated."""
    for actuator in actuators:
        if not isinstance(actuator, Actuator):
            raise ActuatorError(
                f"{actuator!r} is no Actuator; position_servos(model, 40.0, 1.0) makes some.", code="wrong-type"
            )
        if actuator.kind != "affine" or actuator.drives not in ("joint", "tendon", "site"):
            what = f"of the kind {actuator.kind!r}" if actuator.kind != "affine" else f"on a {actuator.drives}"
            raise ActuatorError(
                f"the actuator {actuator.name!r} is {what}; those that can be simulated are affine and drive a joint, "
                f"a tendon over joints or a site. {_without(actuator)}",
                code="not-supported",
            )
        if actuator.drives == "site":
            model.frame(actuator.target)
            continue
        for name, _ in driving_terms(model, actuator):
            joint = model.joint(name)
            if joint.kind.nv != 1 or joint.mimic is not None:
                raise ActuatorError(
                    f"the actuator {actuator.name!r} drives {name!r}, which has {joint.kind.nv} velocities of its own; "
                    f"those that can be simulated drive joints with one. {_without(actuator)}",
                    code="not-supported",
                )


def _without(actuator: Actuator) -> str:
    return f"Leave it out: actuators=[a for a in model.actuators if a.name != {actuator.name!r}]."


def driving_terms(model: Model, actuator: Actuator) -> list[tuple[str, float]]:
    """The joints that an actuator drives, and l per coordinate of each."""
    gear = actuator.force_gear[0]
    if actuator.drives == "joint":
        return [(actuator.target, gear)]
    tendon = next((t for t in model.tendons if t.name == actuator.target), None)
    if tendon is None or not tendon.terms:
        raise ActuatorError(
            f"the actuator {actuator.name!r} pulls {actuator.target!r}, which is no tendon over joints: strings "
            f"through sites cannot be simulated. {_without(actuator)}",
            code="not-supported",
        )
    return [(name, gear * factor) for name, factor in tendon.terms]


def limited_servos(actuators: tuple[Actuator, ...]) -> list[int]:
    """The actuators of a joint or a tendon whose force depends on its motion, and has limits."""
    return [
        k
        for k, one in enumerate(actuators)
        if one.drives != "site" and one.force_range and any((*one.gain[1:], *one.bias[1:]))
    ]


def drive(model: Model, actuators: tuple[Actuator, ...], q: Any, v: Any, u: Any, h: Any, modes: Any = None) -> Drive:
    """Forces of actuators, springs and dampers at the end of a step h [s], in which the velocity would stay v.

    A servo is implicit within its limits, and pushes with the limit elsewhere: which of the two is said by `modes`, or
    by the velocity of the step's beginning.
    """
    passive = PassiveElements.of(model, q, v)
    force = passive.force - h * passive.stiffness_times(v)
    added = h * passive.damping + h * h * passive.stiffness + np.zeros(model.nv)
    rank_ones = [RankOne(t.moment_arms, h * t.damping + h * h * t.stiffness) for t in passive.tendons]
    clipped = np.array(0.0)
    if not actuators:
        for k, i in enumerate(driven_velocities(model)):
            most = model.effort_limit[i]
            taken = np.clip(u[k], -most, most)
            clipped = clipped + np.where(taken != u[k], 1.0, 0.0)
            force[i] = force[i] + taken
        return Drive(force, added, tuple(rank_ones), clipped, np.zeros(0), lambda end: np.zeros(0))
    servos, taken_modes, later = limited_servos(actuators), [], []  # type: list[int], list[Any], list[Any]
    for k, actuator in enumerate(actuators):
        control = u[k]
        if actuator.control_range:
            control = np.clip(control, *actuator.control_range)
            clipped = clipped + np.where(control != u[k], 1.0, 0.0)
        if actuator.drives == "site":
            moment = _site_moment(model, actuator, q)
            pull = _affine(actuator, control, 0.0, moment @ v)
            within = np.clip(pull, *actuator.force_range) if actuator.force_range else pull
            clipped = clipped + np.where(within != pull, 1.0, 0.0)
            force = force + moment * within
            continue
        terms = [(model.q_starts[j], model.v_starts[j], c) for j, c in _places(model, actuator)]
        rate = sum(c * v[j] for _, j, c in terms)
        length = sum(c * q[i] for i, _, c in terms) + h * rate
        (_, g1, g2), (_, b1, b2) = actuator.gain, actuator.bias
        pull = _affine(actuator, control, length, rate)
        slope = h * (g1 * control + b1) + (g2 * control + b2)  # what the force gains per unit of l̇
        if actuator.force_range:
            mode = _mode(pull, *actuator.force_range)
            if k in servos:
                mode = mode if modes is None else modes[len(taken_modes)]
                taken_modes.append(mode)
                later.append((pull, slope, rate, terms, actuator.force_range))
            at_limit = mode != 0.0
            clipped = clipped + np.where(at_limit, 1.0, 0.0)
            lower, upper = actuator.force_range
            pull = np.where(mode > 0.0, upper, np.where(mode < 0.0, lower, pull))
            slope = np.where(at_limit, 0.0, slope)
        moment_arms = numpy.zeros(model.nv)
        for _, j, c in terms:
            force[j] = force[j] + c * pull
            moment_arms[j] += c
        if len(terms) == 1:
            ((_, j, c),) = terms
            added[j] = added[j] + np.maximum(-h * c * c * slope, 0.0)
        elif any((g1, g2, b1, b2)):  # a tendon, which resists its joints together
            rank_ones.append(RankOne(moment_arms, np.maximum(-h * slope, 0.0)))

    def modes_at(end: Any) -> Any:
        found = []
        for pull, slope, rate, terms, limits in later:
            changed = sum(c * end[j] for _, j, c in terms) - rate
            found.append(_mode(pull + slope * changed, *limits))
        return np.stack(found) if found else np.zeros(0)

    found_modes = np.stack(taken_modes) if taken_modes else np.zeros(0)
    return Drive(force, added, tuple(rank_ones), clipped, found_modes, modes_at)


def _mode(pull: Any, lower: float, upper: float) -> Any:
    """1 beyond the upper limit, -1 beyond the lower one, 0 within; a force at its limit but for rounding is within."""
    slack = _ROUNDING * (upper - lower)
    return np.where(pull > upper + slack, 1.0, np.where(pull < lower - slack, -1.0, 0.0))


def _affine(actuator: Actuator, u: Any, length: Any, rate: Any) -> Any:
    """The force of an actuator, before its limits."""
    (g0, g1, g2), (b0, b1, b2) = actuator.gain, actuator.bias
    return (g0 + g1 * length + g2 * rate) * u + b0 + b1 * length + b2 * rate


def _site_moment(model: Model, actuator: Actuator, q: Any) -> Any:
    """(nv,) generalised forces of a unit of force: the gear is a wrench in the axes of a site, which has no length."""
    wrench = numpy.array((*actuator.force_gear, *actuator.torque_gear))
    return wrench @ frame_jacobian.function(model, q, frame=actuator.target)


def _places(model: Model, actuator: Actuator) -> list[tuple[int, float]]:
    return [(model.joint_index(name), factor) for name, factor in driving_terms(model, actuator)]
