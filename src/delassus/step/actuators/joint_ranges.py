"""Limits of the total actuator force of a joint, MJCF's `actuatorfrcrange`.

A joint that one actuator drives alone has its limit in that actuator's own force range, since

    clip(g clip(f, a, b), l, u) = g clip(f, clip(a, l/g, u/g), clip(b, l/g, u/g)),

so that such a servo is implicit up to its limit. Where several actuators, or one that drives several joints, push a
joint, the sum is clipped by the forces that they have at the velocity of the step's beginning.
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
    """The actuators, those that drive a joint alone within its limit."""
    every = tuple(actuators)
    ranges, counts = _ranges(model), Counter(j for one in every for j in _actuated_velocities(model, one))
    return tuple(_limited(model, one, ranges, counts) for one in every)


def shared_ranges(model: Model, actuators: tuple[Actuator, ...]) -> dict[int, tuple[float, float]]:
    """Limits of velocities that several actuators push, or one that pushes others too, by their numbers."""
    ranges = _ranges(model)
    if not ranges:
        return {}
    driven = [_actuated_velocities(model, one) for one in actuators]
    counts = Counter(j for dofs in driven for j in dofs)
    shared = {j for dofs in driven for j in dofs if counts[j] > 1 or len(dofs) > 1}
    return {j: limits for j, limits in ranges.items() if j in shared}


def _ranges(model: Model) -> dict[int, tuple[float, float]]:
    """The limits of all joints that have one, by the numbers of their velocities."""
    limited = [(start, joint.actuator_force_range) for joint, start in zip(model.joints, model.v_starts, strict=True)]
    return {start: (result[0], result[1]) for start, result in limited if result}


def _actuated_velocities(model: Model, actuator: Actuator) -> set[int]:
    """The velocities that an actuator pushes."""
    if actuator.drives in ("joint", "joint-in-parent"):
        own = model.v_slice(actuator.target)
        return set(range(own.start, own.stop))
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
    driven = _actuated_velocities(model, actuator)
    if len(driven) != 1 or actuator.drives != "joint":
        return actuator
    (j,) = driven
    gear = actuator.force_gear[0]
    if j not in ranges or counts[j] > 1 or gear == 0.0:
        return actuator
    lower, upper = sorted(limit / gear for limit in ranges[j])
    least, most = actuator.force_range or (-math.inf, math.inf)
    return replace(actuator, force_range=(float(np.clip(least, lower, upper)), float(np.clip(most, lower, upper))))
