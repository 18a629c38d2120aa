"""Actuators of a robot: what a control, or an activation, becomes at the joints.

The force of an actuator is that of its law, as f = (g₀ + g₁ l + g₂ l̇) u + b₀ + b₁ l + b₂ l̇ (see `Actuator`). In a step
of time it is that of the step's end: what grows with l and l̇ resists the joint and goes into its own inertia, so that
servos of any stiffness are stable. So do springs and dampers; those of tendons, and actuators that pull tendons, resist
several joints at once. An actuator at its limit pushes with it, and resists nothing; whether it is there is seen at the
step's end.
"""

from __future__ import annotations

from typing import Any

import numpy

import delassus.numpy as np
from delassus.constrained.elimination.tree_factor import RankOne
from delassus.dynamics.forces.passive import PassiveElements
from delassus.dynamics.kinematics.jacobians import frame_jacobian
from delassus.model.model import Model
from delassus.model.traced import array_of, has_any
from delassus.model.transmission import STATELESS, Actuator
from delassus.step.actuators.checks import driven_velocities, driving_terms
from delassus.step.actuators.force_law import LAWS
from delassus.step.actuators.forces import Forces, LimitedServos, force_mode


def limited_servos(actuators: tuple[Actuator, ...]) -> list[int]:
    """The actuators of a joint or a tendon whose force depends on its motion, and has limits."""
    return [
        k
        for k, one in enumerate(actuators)
        if one.drives != "site" and one.force_range and has_any((*one.gain[1:], *one.bias[1:]))
    ]


def drive(model: Model, actuators: tuple[Actuator, ...], q: Any, v: Any, u: Any, h: Any, modes: Any = None) -> Forces:
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
        return Forces(force, added, tuple(rank_ones), clipped=clipped, modes=np.zeros(0))
    servos, active_modes, laws = limited_servos(actuators), [], []  # type: list[int], list[Any], list[Any]
    for k, actuator in enumerate(actuators):
        control, law = u[k], LAWS[actuator.law]
        if actuator.control_range and actuator.dynamics == STATELESS:
            control = np.clip(control, *actuator.control_range)
            clipped = clipped + np.where(control != u[k], 1.0, 0.0)
        if actuator.drives == "site":
            moment = _site_moment(model, actuator, q)
            pull = law.force(actuator, control, 0.0, moment @ v)
            within = np.clip(pull, *actuator.force_range) if actuator.force_range else pull
            clipped = clipped + np.where(within != pull, 1.0, 0.0)
            force = force + moment * within
            continue
        terms = [(model.q_starts[j], model.v_starts[j], c) for j, c in _places(model, actuator)]
        rate = sum(c * v[j] for _, j, c in terms)
        length = sum(c * q[i] for i, _, c in terms) + h * rate
        pull = law.force(actuator, control, length, rate)
        slope = law.slope(actuator, control, length, rate, h)
        moment_arms = numpy.zeros(model.nv)
        for _, j, c in terms:
            moment_arms[j] += c
        if actuator.force_range:
            mode = force_mode(pull, *actuator.force_range)
            if k in servos:
                mode = mode if modes is None else modes[len(active_modes)]
                active_modes.append(mode)
                laws.append(LimitedServos(pull, slope, rate, moment_arms, *actuator.force_range))
            at_limit = mode != 0.0
            clipped = clipped + np.where(at_limit, 1.0, 0.0)
            lower, upper = actuator.force_range
            pull = np.where(mode > 0.0, upper, np.where(mode < 0.0, lower, pull))
            slope = np.where(at_limit, 0.0, slope)
        for _, j, c in terms:
            force[j] = force[j] + c * pull
        if len(terms) == 1:
            ((_, j, c),) = terms
            added[j] = added[j] + np.maximum(-h * c * c * slope, 0.0)
        elif actuator.law != "affine" or has_any(
            (*actuator.gain[1:], *actuator.bias[1:])
        ):  # a tendon, which resists its joints together
            rank_ones.append(RankOne(moment_arms, np.maximum(-h * slope, 0.0)))
    if not laws:
        return Forces(force, added, tuple(rank_ones), clipped=clipped, modes=np.zeros(0))
    pulls, slopes, rates = (np.stack([np.array(law[k]) for law in laws]) for k in range(3))
    arms = numpy.array([law.moment_arms for law in laws])
    low, high = (array_of(tuple(law[k] for law in laws)) for k in (4, 5))
    limited = LimitedServos(pulls, slopes, rates, arms, low, high)
    return Forces(force, added, tuple(rank_ones), clipped=clipped, modes=np.stack(active_modes), servos=limited)


def _site_moment(model: Model, actuator: Actuator, q: Any) -> Any:
    """(nv,) generalised forces of a unit of force: the gear is a wrench in the axes of a site, which has no length."""
    wrench = numpy.array((*actuator.force_gear, *actuator.torque_gear))
    return wrench @ frame_jacobian.function(model, q, frame=actuator.target)


def _places(model: Model, actuator: Actuator) -> list[tuple[int, float]]:
    return [(model.joint_index(name), factor) for name, factor in driving_terms(model, actuator)]
