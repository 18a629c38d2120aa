"""Joint limits in inverse kinematics: bounds on velocities, and clipping of configurations."""

from __future__ import annotations

from typing import Any

import numpy

import delassus.numpy as np
from delassus.model.model import Model


def limited_coordinates(model: Model) -> list[tuple[int, int]]:
    """Coordinates with limits and their velocities, of joints with one of each."""
    coordinates = []
    for joint, i, v in zip(model.joints, model.q_starts, model.v_starts, strict=True):
        plain = joint.mimic is None and joint.kind.nq == joint.kind.nv == 1
        if plain and numpy.isfinite([model.lower[i], model.upper[i]]).any():
            coordinates.append((i, v))
    return coordinates


def velocity_bounds(model: Model, q: Any, step: Any) -> tuple[Any, Any]:
    """Bounds of velocities (nv,): velocity limits, and position limits after a `step` [s], None for none."""
    most = numpy.array(model.velocity_limit)
    lower, upper = np.array(-most), np.array(most)
    if step is not None:
        for i, v in limited_coordinates(model):
            # A joint beyond its limit returns no faster than its velocity limit.
            lower[v] = np.clip((model.lower[i] - q[i]) / step, -most[v], most[v])
            upper[v] = np.clip((model.upper[i] - q[i]) / step, -most[v], most[v])
    return lower, upper


def within(model: Model, q: Any) -> Any:
    """A configuration (nq,) clipped to the joint limits."""
    clipped = np.array(q)
    for i, _ in limited_coordinates(model):
        clipped[i] = np.clip(clipped[i], model.lower[i], model.upper[i])
    return clipped


def movable_velocities(model: Model, q: Any, direction: Any) -> Any:
    """1 for velocities (nv,) that may follow a direction (nv,), 0 for those that would violate a limit."""
    free = np.ones(model.nv)
    for i, v in limited_coordinates(model):
        out = ((q[i] <= model.lower[i]) & (direction[v] < 0.0)) | ((q[i] >= model.upper[i]) & (direction[v] > 0.0))
        free[v] = np.where(out, 0.0, 1.0)
    return free
