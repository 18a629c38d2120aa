"""Generalized forces of actuators for controls and activations.

The force of an actuator is that of its law, as f = (g₀ + g₁ l + g₂ l̇) u + b₀ + b₁ l + b₂ l̇ (see `Actuator`). In a step
of time it is that of the step's end: what grows with l and l̇ resists the joint and goes into its own inertia, so that
servos of any stiffness are stable. So do springs and dampers; those of tendons, and actuators that pull tendons, resist
several joints at once. An actuator at its limit pushes with it, and resists nothing; whether it is there is seen at the
step's end.
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
    """The actuators with a length whose force depends on its motion, and has limits."""
    return [
        k
        for k, one in enumerate(actuators)
        if _has_length(one) and one.force_range and has_nonzero((*one.gain[1:], *one.bias[1:]))
    ]


def _has_length(actuator: Actuator) -> bool:
    """Whether what an actuator drives has a length: not a site by itself, nor a body, whose adhesion is left out."""
    return actuator.drives != "body" and not (actuator.drives == "site" and not actuator.reference)


def drive(model: Model, actuators: tuple[Actuator, ...], q: Any, v: Any, u: Any, h: Any, modes: Any = None) -> Forces:
    """Forces of actuators, springs and dampers at the end of a step h [s], in which the velocity would stay v.

    A servo is implicit within its limits, and pushes with the limit elsewhere: which of the two is said by `modes`, or
    by the velocity of the step's beginning.
    """
    passive = PassiveElements.of(model, q, v)
    force = passive.force - h * passive.stiffness_times(v)
    added = h * passive.damping + h * h * passive.stiffness + np.zeros(model.nv)
    rank_ones = [RankOne(t.moment_arms, h * t.damping + h * h * t.stiffness, tuple(t.dofs)) for t in passive.tendons]
    clipped = np.array(0.0)
    if not actuators:
        for k, i in enumerate(model.actuated_velocities):
            most = model.effort_limit[i]
            taken = np.clip(u[k], -most, most)
            clipped = clipped + np.where(taken != u[k], 1.0, 0.0)
            force[i] = force[i] + taken
        return Forces(force, added, tuple(rank_ones), clipped=clipped, modes=np.zeros(0))
    servos = limited_servos(actuators)
    active_modes: list[Any] = []
    laws: list[LimitedServos] = []
    pulls: list[_Pull] = []
    for k, actuator in enumerate(actuators):
        control, law = u[k], LAWS[actuator.law]
        if actuator.control_range and actuator.dynamics == STATELESS:
            control = np.clip(control, *actuator.control_range)
            clipped = clipped + np.where(control != u[k], 1.0, 0.0)
        line = transmission(model, actuator, q, v)
        if actuator.drives == "body":
            continue
        if not _has_length(actuator):
            pull = law.force(actuator, control, 0.0, line.rate)
            within = np.clip(pull, *actuator.force_range) if actuator.force_range else pull
            clipped = clipped + np.where(within != pull, 1.0, 0.0)
            pulls.append(_Pull(line, within, None))
            continue
        length = line.length + h * line.rate
        pull = law.force(actuator, control, length, line.rate)
        slope = law.slope(actuator, control, length, line.rate, h)
        if actuator.force_range:
            lower, upper = actuator.force_range
            mode = force_mode(pull, lower, upper)
            if k in servos:
                mode = mode if modes is None else modes[len(active_modes)]
                active_modes.append(mode)
                laws.append(LimitedServos(pull, slope, line.rate, line.moment_arms, lower, upper, line.dofs))
            at_limit = mode != 0.0
            clipped = clipped + np.where(at_limit, 1.0, 0.0)
            pull = np.where(mode > 0.0, upper, np.where(mode < 0.0, lower, pull))
            slope = np.where(at_limit, 0.0, slope)
        resists = actuator.law != "affine" or has_nonzero((*actuator.gain[1:], *actuator.bias[1:]))
        pulls.append(_Pull(line, pull, slope if resists else None))
    saturated = _saturate_joints(model, actuators, pulls)
    for _, is_beyond in saturated.values():
        clipped = clipped + np.where(is_beyond, 1.0, 0.0)
    for line, pull, slope in pulls:
        arms = line.moment_arms
        for j in line.dofs:
            if j not in saturated:
                force[j] = force[j] + arms[j] * pull
        if slope is None:
            continue
        if len(line.dofs) == 1:
            (j,) = line.dofs
            own = np.maximum(-h * arms[j] * arms[j] * slope, 0.0)
            added[j] = added[j] + (np.where(saturated[j][1], 0.0, own) if j in saturated else own)
            continue
        for j in saturated.keys() & set(line.dofs):  # a joint at the limit of its actuators resists nothing
            arms = np.array(arms)
            arms[j] = np.where(saturated[j][1], 0.0, arms[j])
        rank_ones.append(RankOne(arms, np.maximum(-h * slope, 0.0), tuple(line.dofs)))
    for j, (total, _) in saturated.items():
        force[j] = force[j] + total
    if not laws:
        return Forces(force, added, tuple(rank_ones), clipped=clipped, modes=np.zeros(0))
    pull, slope, rate = (np.stack([np.array(law[k]) for law in laws]) for k in range(3))
    lowest, highest = (array_of(tuple(law[k] for law in laws)) for k in (4, 5))
    arms, dofs = [law.moment_arms for law in laws], [law.dofs for law in laws]
    limited = LimitedServos(pull, slope, rate, arms, lowest, highest, dofs)
    return Forces(force, added, tuple(rank_ones), clipped=clipped, modes=np.stack(active_modes), servos=limited)


class _Pull(NamedTuple):
    """The force of an actuator along its transmission, and its derivative with respect to the rate; None for zero."""

    line: Transmission
    force: Any
    slope: Any


def _saturate_joints(model: Model, actuators: tuple[Actuator, ...], pulls: list[_Pull]) -> dict[int, tuple[Any, Any]]:
    """The velocities of joints whose actuators together have a limit: their force within it, and whether it is there.

    Those that one actuator drives alone have the limit in its own force range (`joint_ranges`).
    """
    shared: dict[int, tuple[Any, Any]] = {}
    for j, (lower, upper) in shared_ranges(model, actuators).items():
        total = sum((p.line.moment_arms[j] * p.force for p in pulls if j in p.line.dofs), np.array(0.0))
        within = np.clip(total, lower, upper)
        shared[j] = within, within != total
    return shared
