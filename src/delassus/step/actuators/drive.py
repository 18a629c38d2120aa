"""Generalized forces of actuators for controls and activations.

The force of an actuator is that of its law, such as f = (g₀ + g₁ l + g₂ l̇) u + b₀ + b₁ l + b₂ l̇ (see `Actuator`). A
time step is implicit in l and l̇: their gains are added to the inertia of the joint, so servos of any stiffness are
stable. Springs and dampers are implicit, too. Those of tendons, and actuators of tendons, couple several joints. The
force of an actuator at its limit is constant, without implicit terms. The mode of an actuator, within its limits or at
one of them, is that at the end of the step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.constrained.elimination.tree_factor import RankOne
from delassus.dynamics.forces.passive import PassiveElements
from delassus.model.model import Model
from delassus.model.traced import array_of, has_nonzero
from delassus.model.transmission import STATELESS, Actuator
from delassus.step.actuators.force_law import LAWS
from delassus.step.actuators.forces import Forces, LimitedServos, force_mode
from delassus.step.actuators.joint_ranges import shared_ranges
from delassus.step.actuators.transmissions import Transmission, transmission


def limited_servos(actuators: tuple[Actuator, ...]) -> list[int]:
    """The indices of actuators with a length, limits, and a force that depends on length or rate."""
    return [
        k
        for k, actuator in enumerate(actuators)
        if _has_length(actuator) and actuator.force_range and has_nonzero((*actuator.gain[1:], *actuator.bias[1:]))
    ]


def _has_length(actuator: Actuator) -> bool:
    """Whether the transmission of an actuator has a length; that of a site without a reference, or a body, has none."""
    return actuator.drives != "body" and not (actuator.drives == "site" and not actuator.reference)


def drive(model: Model, actuators: tuple[Actuator, ...], q: Any, v: Any, u: Any, h: Any, modes: Any = None) -> Forces:
    """Forces of actuators, springs and dampers at the end of a step h [s] at constant velocity v, with implicit terms.

    A servo is implicit within its limits; at a limit its force is constant. `modes` says which of the two holds; None
    means the modes at the velocity v.
    """
    passive = PassiveElements.of(model, q, v)
    force = passive.force - h * passive.stiffness_times(v)
    added = h * passive.damping + h * h * passive.stiffness + np.zeros(model.nv)
    rank_ones = [RankOne(t.moment_arms, h * t.damping + h * h * t.stiffness, tuple(t.dofs)) for t in passive.tendons]
    clipped = np.array(0.0)
    if not actuators:
        for k, i in enumerate(model.actuated_velocities):
            limit = model.effort_limit[i]
            torque = np.clip(u[k], -limit, limit)
            clipped = clipped + np.where(torque != u[k], 1.0, 0.0)
            force[i] = force[i] + torque
        return Forces(force, added, tuple(rank_ones), clipped=clipped, modes=np.zeros(0))
    servos = limited_servos(actuators)
    active_modes: list[Any] = []
    laws: list[LimitedServos] = []
    actuator_forces: list[_ActuatorForce] = []
    for k, actuator in enumerate(actuators):
        control, law = u[k], LAWS[actuator.law]
        if actuator.control_range and actuator.dynamics == STATELESS:
            control = np.clip(control, *actuator.control_range)
            clipped = clipped + np.where(control != u[k], 1.0, 0.0)
        line = transmission(model, actuator, q, v)
        if actuator.drives == "body":
            continue
        if not _has_length(actuator):
            f = law.force(actuator, control, 0.0, line.rate)
            limited_force = np.clip(f, *actuator.force_range) if actuator.force_range else f
            clipped = clipped + np.where(limited_force != f, 1.0, 0.0)
            actuator_forces.append(_ActuatorForce(line, limited_force, None))
            continue
        length = line.length + h * line.rate
        f = law.force(actuator, control, length, line.rate)
        slope = law.slope(actuator, control, length, line.rate, h)
        if actuator.force_range:
            lower, upper = actuator.force_range
            mode = force_mode(f, lower, upper)
            if k in servos:
                mode = mode if modes is None else modes[len(active_modes)]
                active_modes.append(mode)
                laws.append(LimitedServos(f, slope, line.rate, line.moment_arms, lower, upper, line.dofs))
            at_limit = mode != 0.0
            clipped = clipped + np.where(at_limit, 1.0, 0.0)
            f = np.where(mode > 0.0, upper, np.where(mode < 0.0, lower, f))
            slope = np.where(at_limit, 0.0, slope)
        is_implicit = actuator.law != "affine" or has_nonzero((*actuator.gain[1:], *actuator.bias[1:]))
        actuator_forces.append(_ActuatorForce(line, f, slope if is_implicit else None))
    saturated = _saturate_joints(model, actuators, actuator_forces)
    for _, is_beyond in saturated.values():
        clipped = clipped + np.where(is_beyond, 1.0, 0.0)
    for line, f, slope in actuator_forces:
        arms = line.moment_arms
        for j in line.dofs:
            if j not in saturated:
                force[j] = force[j] + arms[j] * f
        if slope is None:
            continue
        if len(line.dofs) == 1:
            (j,) = line.dofs
            implicit_term = np.maximum(-h * arms[j] * arms[j] * slope, 0.0)
            added[j] = added[j] + (np.where(saturated[j][1], 0.0, implicit_term) if j in saturated else implicit_term)
            continue
        for j in saturated.keys() & set(line.dofs):  # no implicit terms for a joint at its actuator force limit
            arms = np.array(arms)
            arms[j] = np.where(saturated[j][1], 0.0, arms[j])
        rank_ones.append(RankOne(arms, np.maximum(-h * slope, 0.0), tuple(line.dofs)))
    for j, (total, _) in saturated.items():
        force[j] = force[j] + total
    if not laws:
        return Forces(force, added, tuple(rank_ones), clipped=clipped, modes=np.zeros(0))
    f, slope, rate = (np.stack([np.array(law[k]) for law in laws]) for k in range(3))
    lowest, highest = (array_of(tuple(law[k] for law in laws)) for k in (4, 5))
    arms, dofs = [law.moment_arms for law in laws], [law.dofs for law in laws]
    limited = LimitedServos(f, slope, rate, arms, lowest, highest, dofs)
    return Forces(force, added, tuple(rank_ones), clipped=clipped, modes=np.stack(active_modes), servos=limited)


class _ActuatorForce(NamedTuple):
    """The force of an actuator along its transmission, and its derivative with respect to the rate; None for zero."""

    line: Transmission
    force: Any
    slope: Any


def _saturate_joints(
    model: Model, actuators: tuple[Actuator, ...], actuator_forces: list[_ActuatorForce]
) -> dict[int, tuple[Any, Any]]:
    """For velocities with a limit on the sum of several actuators: the clipped force, and whether it was clipped.

    If one actuator alone drives a joint, the limit is part of its force range instead (`joint_ranges`).
    """
    saturated: dict[int, tuple[Any, Any]] = {}
    for j, (lower, upper) in shared_ranges(model, actuators).items():
        total = sum((a.line.moment_arms[j] * a.force for a in actuator_forces if j in a.line.dofs), np.array(0.0))
        clipped = np.clip(total, lower, upper)
        saturated[j] = clipped, clipped != total
    return saturated
