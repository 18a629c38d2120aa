"""States to begin with that cannot be: open loops, and robots that stick in the ground."""

from __future__ import annotations

from typing import Any

import numpy as np

from delassus.constrained.projection.assemble import assemble
from delassus.constrained.projection.project import project
from delassus.constrained.rows.references import constraint_error
from delassus.errors import warn
from delassus.model.joints import Free
from delassus.simulation.checks import SimulationError
from delassus.simulation.ground import Ground
from delassus.simulation.step.step import candidate_geometry
from delassus.simulation.step.world import World

OPEN = 1e-6
"""Errors of constraints [m, rad] beyond count as open loops."""

DEEP = 1e-3
"""Penetrations [m] beyond are deep."""


def repaired(world: World, ground: Ground, q: Any, v: Any, repair: bool) -> tuple[Any, Any]:
    """Configurations and velocities with loops closed and robots above the ground; refused unless `repair`."""
    if world.mechanism.m:
        q, v = _closed(world, q, v, repair)
    return (_lifted(world, ground, q, repair) if world.on_ground else q), v


def _closed(world: World, q: Any, v: Any, repair: bool) -> tuple[Any, Any]:
    error = np.abs(constraint_error(world.mechanism, q, time=0.0)).max(-1)
    if np.any(error > OPEN):
        worst = _worst(error)
        if not repair:
            raise SimulationError(
                f"a loop is open by {error.max():.3g} m or rad{worst}. Close it with dl.assemble, or give repair=True."
            )
        found = assemble(world.mechanism, q, time=0.0)
        q = np.where((error > OPEN)[..., None], found.q, q)
        left = np.abs(constraint_error(world.mechanism, q, time=0.0)).max(-1)
        if np.any(left > OPEN):
            raise SimulationError(
                f"a loop is open by {error.max():.3g} m or rad{worst} and cannot be closed from there; "
                f"{left.max():.3g} is left. Start from a configuration in which it is closed."
            )
    return project(world.mechanism, q, v, time=0.0)


def _lifted(world: World, ground: Ground, q: Any, repair: bool) -> Any:
    gap, _, normal = candidate_geometry(world, q, **ground.geometry)
    gap = gap[..., : world.on_ground]
    depth = -gap.min(-1)
    if not np.any(depth > DEEP):
        return q
    if not repair:
        raise SimulationError(
            f"a shape is {depth.max():.3g} m deep in the ground{_worst(depth)}. Start higher, or give repair=True."
        )
    lifted = np.array(q)
    for root, own in _robots(world).items():
        if not isinstance(world.model.joints[root].kind, Free):
            continue  # steps take it back, as far as the joints can move
        near = gap[..., own]
        deepest = np.take_along_axis(normal[..., own, :], near.argmin(-1)[..., None, None], -2)[..., 0, :]
        depth = -near.min(-1)[..., None]
        at = world.model.q_starts[root]
        lifted[..., at : at + 3] += np.where(depth > DEEP, depth * deepest, 0.0)
    if not world.mechanism.m:
        return _said(world, ground, lifted)
    apart = np.abs(constraint_error(world.mechanism, lifted, time=0.0)).max(-1) > OPEN
    return _said(world, ground, np.where(apart[..., None], q, lifted))  # what loops hold to something else stays there


def _said(world: World, ground: Ground, q: Any) -> Any:
    """The same configurations, with a warning of shapes that are still deep in the ground."""
    gap = candidate_geometry(world, q, **ground.geometry)[0][..., : world.on_ground]
    lowest = gap.reshape(-1, world.on_ground).min(0)
    if lowest.min() < -DEEP:
        shape = world.meetings[int(lowest.argmin())][2]
        warn(
            f"the shape {shape!r} starts {-lowest.min():.3g} m deep in the ground, and its robot is not free to be "
            "lifted: steps push it out as far as its joints can move. Give Ground(height=…), or leave it out by "
            "touching=."
        )
    return q


def _robots(world: World) -> dict[int, list[int]]:
    """The candidates of each robot in the world, by the joint that it begins with."""
    joints = world.model.joints
    found: dict[int, list[int]] = {}
    for k, owner in enumerate(world.owners):
        root = world.shapes[owner].geometry.joint
        while joints[root].parent >= 0:
            root = joints[root].parent
        found.setdefault(root, []).append(k)
    return found


def _worst(error: Any) -> str:
    """Which item has the largest error."""
    if not np.ndim(error):
        return ""
    return f", in item {', '.join(str(int(i)) for i in np.unravel_index(int(np.argmax(error)), np.shape(error)))}"
