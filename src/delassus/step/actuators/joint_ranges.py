"""Limits of the total actuator force of a joint, MJCF's `actuatorfrcrange`.

If one actuator alone drives a joint, and no other joint, the limit becomes part of its force range, since

    clip(g clip(f, a, b), l, u) = g clip(f, clip(a, l/g, u/g), clip(b, l/g, u/g)).

A servo of this type is implicit up to its limit. For other joints, the sum of the actuator forces at the velocity of
the step's beginning is clipped.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from delassus.dynamics.forces.spatial_tendons import moving_dofs, string_dofs
from delassus.dynamics.forces.tendons import tendon_named
from delassus.model.model import Model
from delassus.model.transmission import Actuator


def limited_by_joints(model: Model, actuators: Iterable[Actuator]) -> tuple[Actuator, ...]:
    """The actuators; if one alone drives a joint, its force range is intersected with the limit of the joint."""
    actuators = tuple(actuators)
    ranges, counts = _ranges(model), Counter(j for a in actuators for j in _actuated_velocities(model, a))
    return tuple(_limited(model, actuator, ranges, counts) for actuator in actuators)


def shared_ranges(model: Model, actuators: tuple[Actuator, ...]) -> dict[int, tuple[float, float]]:
    """Limits by velocity index, for velocities with several actuators, or with one that drives other velocities too."""
    ranges = _ranges(model)
    if not ranges:
        return {}
    driven = [_actuated_velocities(model, actuator) for actuator in actuators]
    counts = Counter(j for dofs in driven for j in dofs)
    shared = {j for dofs in driven for j in dofs if counts[j] > 1 or len(dofs) > 1}
    return {j: limits for j, limits in ranges.items() if j in shared}


def _ranges(model: Model) -> dict[int, tuple[float, float]]:
    """The actuator force limits of joints, by velocity index."""
    limits = [(start, joint.actuator_force_range) for joint, start in zip(model.joints, model.v_starts, strict=True)]
    return {start: (limit[0], limit[1]) for start, limit in limits if limit}


def _actuated_velocities(model: Model, actuator: Actuator) -> set[int]:
    """The indices of the velocities that an actuator drives."""
    if actuator.drives in ("joint", "joint-in-parent"):
        velocities = model.v_slice(actuator.target)
        return set(range(velocities.start, velocities.stop))
    if actuator.drives == "tendon":
        tendon = tendon_named(model, actuator.target)
        if tendon is None:
            return set()
        return {model.v_slice(name).start for name, _ in tendon.terms} | string_dofs(model, tendon)
    sites = [actuator.target, actuator.reference] if actuator.reference else [actuator.target]
    return {j for name in sites for j in moving_dofs(model, name)}


def _limited(
    model: Model, actuator: Actuator, ranges: dict[int, tuple[float, float]], counts: Counter[int]
) -> Actuator:
    """An actuator with the limit of its joint in its force range, if it alone drives the joint."""
    driven = _actuated_velocities(model, actuator)
    if len(driven) != 1 or actuator.drives != "joint":
        return actuator
    (j,) = driven
    gear = actuator.force_gear[0]
    if j not in ranges or counts[j] > 1 or gear == 0.0:
        return actuator
    lower, upper = sorted(limit / gear for limit in ranges[j])
    low, high = actuator.force_range or (-math.inf, math.inf)
    return replace(actuator, force_range=(float(np.clip(low, lower, upper)), float(np.clip(high, lower, upper))))
