"""Repair of invalid starts: open loops, robots that penetrate the ground, bodies that overlap."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import array_of_shape
from delassus.constrained.projection.assemble import assemble
from delassus.constrained.projection.project import project
from delassus.constrained.rows.references import constraint_error
from delassus.constraints.mechanism.mechanism import Mechanism, ParametricMechanism
from delassus.dynamics.kinematics.manifold import difference
from delassus.errors import warn
from delassus.geometry.candidates import Shape
from delassus.model.description import Keyframe
from delassus.model.joints import Free
from delassus.model.model import Model, ParametricModel
from delassus.model.parameter_names import ACTUATOR_KINDS
from delassus.model.parametric import are_admissible
from delassus.model.parts import WORLD
from delassus.model.transmission import STATELESS, Actuator
from delassus.simulation.checks import SimulationError, fits
from delassus.simulation.ground import Ground
from delassus.simulation.penetration_repair import DEEP, OPEN, move_out_of_ground
from delassus.step.bodies.kernels import geometry_kernel
from delassus.step.scene import Scene

_LIFTS = 20
"""Largest number of lifts of a robot out of a height field."""

_CLEAR = 1e-10
"""Depth [m] at which lifting out of a height field ends."""

_STEEP = 0.2
"""Ground whose normal has a smaller vertical component is a wall: robots are moved sideways out of it."""


def first_keyframe(model: Model) -> Keyframe:
    """The default start of a simulation: the first keyframe of the model's file, else its reference configuration
    "qpos0", else its first posture, else the neutral configuration, at rest."""
    names = [posture.name for posture in model.postures]
    keys = [name for name in names if name != "qpos0"]
    if names:
        return model.keyframe(next(iter(keys or names)))
    none = np.zeros(sum(actuator.dynamics != STATELESS for actuator in model.actuators))
    return Keyframe(model.neutral(), np.zeros(model.nv), none, np.zeros(model.nu), 0.0)


def repaired(
    scene: Scene, separate: Scene, ground: Ground, q: Any, v: Any, repair: bool, time: float
) -> tuple[Any, Any]:
    """Configurations and velocities at a time [s] with closed loops and without penetrations.

    If `repair` is false, an invalid state raises an error instead of being changed.

    `separate` is `between_robots(scene)`, which callers may cache.
    """
    if scene.mechanism.m:
        q, v = _closed(scene, q, v, repair, time)
    if not scene.candidates:
        return q, v
    lifted = _lifted(separate, ground, q, repair, time)
    if scene.mechanism.m:
        is_moved = np.any(lifted != q, -1)[..., None]
        again = project(scene.mechanism, lifted, v, time=time)
        lifted, v = np.where(is_moved, again.q, lifted), np.where(is_moved, again.v, v)
    return lifted, v


def _closed(scene: Scene, q: Any, v: Any, repair: bool, time: float) -> tuple[Any, Any]:
    error = np.abs(constraint_error(scene.mechanism, q, time=time)).max(-1)
    if np.any(error > OPEN):
        worst = _worst(error)
        if not repair:
            raise SimulationError(
                f"a loop is open by {error.max():.3g} m or rad{worst}; it must be at most {OPEN:g}. Close it with "
                "dl.assemble, or pass repair=True.",
                code="constraints-violated",
            )
        solution = assemble(scene.mechanism, q, time=time)
        q = np.where((error > OPEN)[..., None], solution.q, q)
        errors = np.abs(constraint_error(scene.mechanism, q, time=time)).max(-1)
        if np.any(errors > OPEN):
            raise SimulationError(
                f"a loop is open by {error.max():.3g} m or rad{worst}, and dl.assemble leaves "
                f"{errors.max():.3g}. Start from a configuration in which it is closed.",
                code="constraints-violated",
            )
    return project(scene.mechanism, q, v, time=time)


def between_robots(scene: Scene) -> Scene:
    """The scene without pairs of shapes of one robot, whose overlaps are left to the steps."""

    def apart(pair: tuple[Shape, Shape]) -> bool:
        one, two = (_root(scene, shape.geometry.joint) for shape in pair)
        return one != two

    groups = [replace(one, pairs=tuple(filter(apart, one.pairs))) for one in scene.pair_classes]
    classes = tuple(replace(one, slots=min(one.slots, len(one.pairs))) for one in groups if one.pairs)
    collisions = tuple(c for c in scene.collisions if apart((c.shape, c.other)))
    return replace(scene, collisions=collisions, pair_classes=classes)


def _lifted(scene: Scene, ground: Ground, q: Any, repair: bool, time: float) -> Any:
    if not scene.candidates:
        return q
    gap, _, normal = geometry_kernel(scene)(scene, q, ground=ground.shape)
    depth = -gap.min(-1)
    if not np.any(depth > DEEP):
        return q
    if not repair:
        was = _deepest(scene, gap) + _worst(depth)
        raise SimulationError(
            f"{was}; it must be at most {DEEP:g} m. Start from another configuration, or pass repair=True.",
            code="constraints-violated",
        )
    lifted, deep = q, depth > DEEP
    for _ in range(_LIFTS):
        lifted = np.where(deep[..., None], _raised(scene, gap, normal, lifted, time), lifted)
        gap, _, normal = geometry_kernel(scene)(scene, lifted, ground=ground.shape)
        if scene.field is None or not np.any(gap[deep] < -_CLEAR):
            break  # on a height field, lifted shapes may touch elsewhere
    is_deep = -gap.min(-1) > DEEP
    if not is_deep.any():
        return lifted
    was = _deepest(scene, gap) + _worst(-gap.min(-1))
    if scene.many_bodies is not None:
        warn(
            f"{was}. The simulation starts there, and its steps push the shape out at no more than 1 m/s. repair=False "
            "refuses such starts."
        )
        return lifted
    repaired_q = np.array(lifted)
    repaired_q[is_deep] = move_out_of_ground(scene, ground, is_deep, lifted, time)
    gaps = geometry_kernel(scene)(scene, repaired_q, ground=ground.shape)[0]
    motion = np.abs(difference(scene.model, lifted[is_deep], repaired_q[is_deep])).max(initial=0.0)
    if gaps.min() < -DEEP:
        warn(
            f"{_deepest(scene, gaps)}{_worst(-gaps.min(-1))}, and the joints cannot move it out. The simulation starts "
            "there. Pass Ground(height=…), start from another configuration, or leave the shape out of touching=."
        )
    else:
        warn(
            f"{was}. The joints were moved by up to {motion:.3g} rad or m, so that it starts outside. repair=False "
            "refuses such starts."
        )
    return repaired_q


def _raised(scene: Scene, gap: Any, normal: Any, q: Any, time: float) -> Any:
    """Lift robots with a free base out of the ground, unless this would open a loop."""
    lifted = np.array(q)
    for root, candidates in _robots(scene).items():
        if not isinstance(scene.model.joints[root].kind, Free):
            continue
        at = scene.model.q_starts[root]
        lifted[..., at : at + 3] += _lift(scene, gap[..., candidates], normal[..., candidates, :])
    if not scene.mechanism.m:
        return lifted
    apart = np.abs(constraint_error(scene.mechanism, lifted, time=time)).max(-1) > OPEN
    return np.where(apart[..., None], q, lifted)


def _lift(scene: Scene, gap: Any, normal: Any) -> Any:
    """(…, 3) translation that moves all points of a robot out of the ground: along the normal of a plane, vertically on
    a height field, sideways out of a wall."""
    if scene.field is not None:  # a motion along one normal would move other points into other hills
        up = normal[..., 2]
        above = (np.where(up > 0.0, -gap, 0.0) / np.maximum(up, _STEEP)).max(-1)
        below = -gap.min(-1)  # normals of hills that reach through a shape point down: these are handled last
        lift = np.where(above > _CLEAR, above, np.maximum(below, 0.0))[..., None] * np.array([0.0, 0.0, 1.0])
        deepest = gap.argmin(-1)[..., None]
        wall = np.take_along_axis(normal, deepest[..., None], -2)[..., 0, :]
        is_wall = (np.abs(wall[..., 2:]) < _STEEP) & (below[..., None] > DEEP)
        return np.where(is_wall, below[..., None] * wall, lift)
    return np.maximum(-gap.min(-1)[..., None], 0.0) * normal[..., 0, :]


def _deepest(scene: Scene, gap: Any) -> str:
    """A sentence on the deepest penetration."""
    lowest = gap.reshape(-1, scene.candidates).min(0)
    shape, other, _ = scene.candidate_shapes[int(lowest.argmin())]
    where = "the ground" if other is None else f"the shape {other.geometry.name!r}"
    return f"the shape {shape.geometry.name!r} penetrates {where} by {-lowest.min():.3g} m"


def _robots(scene: Scene) -> dict[int, list[int]]:
    """The ground candidates of each robot in the scene, by its root joint."""
    candidates: dict[int, list[int]] = {}
    for k, (shape, _, _) in enumerate(scene.candidate_shapes[: scene.ground_candidates]):
        candidates.setdefault(_root(scene, shape.geometry.joint), []).append(k)
    return candidates


def _root(scene: Scene, joint: int) -> int:
    """The root joint of the robot that a joint belongs to; WORLD for the world."""
    joints = scene.model.joints
    while joint != WORLD and joints[joint].parent != WORLD:
        joint = joints[joint].parent
    return joint


def _worst(error: Any) -> str:
    """A phrase that names the environment with the largest error."""
    if not np.ndim(error):
        return ""
    return (
        f", in environment {', '.join(str(int(i)) for i in np.unravel_index(int(np.argmax(error)), np.shape(error)))}"
    )


def first_activation(na: int, activation: Any, batch: tuple[int, ...]) -> NDArray[np.float64]:
    """Initial activations (…, na), by default zero."""
    values = (
        np.zeros(na)
        if activation is None
        else array_of_shape("the activation", activation, (..., na), "the actuators with a state")
    )
    if not fits(values.shape[:-1], batch):
        raise SimulationError(
            f"the activation has shape {values.shape}; it must be ({na},) or {(*batch, na)}.", code="batch-mismatch"
        )
    return np.broadcast_to(values, (*batch, na)).copy()


def ground_of_items(ground: Ground, batch: tuple[int, ...], numbers: NDArray[np.int64]) -> Ground:
    """The ground of selected environments of a batch, by their flat indices."""
    if not ground.batch:
        return ground
    part = copy(ground)
    for name, core in (
        ("friction", 0),
        ("torsional", 0),
        ("rolling", 0),
        ("restitution", 0),
        ("height", 0),
        ("normal", 1),
    ):
        x = getattr(ground, name)
        if np.ndim(x) > core:
            end = np.shape(x)[np.ndim(x) - core :]
            object.__setattr__(part, name, np.broadcast_to(x, (*batch, *end)).reshape(-1, *end)[numbers])
    return part


def values_of_items(name: str, values: Any, batch: tuple[int, ...], numbers: NDArray[np.int64], size: int) -> Any:
    """Values (n, size) of n environments, from (size,) for all of them, (n, size), or (…, size) for the whole batch."""
    x = array_of_shape(name, values, (..., size))
    if x.shape[:-1] == batch and batch:
        return x.reshape((int(np.prod(batch)), size))[numbers]
    if x.ndim == 1 or x.shape[:-1] in ((len(numbers),), (1,)):
        return np.broadcast_to(x, (len(numbers), size))
    raise SimulationError(
        f"{name} has shape {x.shape}; for {len(numbers)} environments it must be ({size},), ({len(numbers)}, {size}) "
        f"or, for the whole batch, {(*batch, size)}.",
        code="wrong-shape",
    )


def check_parameters(robot: Mechanism, actuators: tuple[Actuator, ...]) -> None:
    """Raise for parameters that a simulation does not support."""
    parts = robot.parametric_part.parts if isinstance(robot, ParametricMechanism) else ()
    for part in parts:
        if part.kind in ("placement", "frame"):
            raise SimulationError(
                f"the robot has the parameter {part.name!r}, and simulations do not support parameters of geometry: "
                "replace it by a constant.",
                code="not-supported",
            )
        if part.kind in ACTUATOR_KINDS and actuators != robot.model.actuators:
            raise SimulationError(
                f"the parameter {part.name!r} belongs to the model's actuators, which actuators= replaces. Put the "
                "new ones into the model: dataclasses.replace(model, actuators=…).parametric(…).",
                code="conflicting-arguments",
            )


def parameter_array(parametric: ParametricModel | None, values: Any) -> NDArray[np.float64]:
    """Parameters (…, nparameters), by default the nominal ones; empty for a robot without parameters."""
    if parametric is None:
        if values is not None:
            raise SimulationError(
                "the robot has no parameters: omit parameters=, or simulate robot.parametric(…).", code="not-parametric"
            )
        return np.zeros(0)
    return (
        parametric.parameters()
        if values is None
        else array_of_shape("the parameters", values, (..., parametric.nparameters))
    )


def are_admissible_for(parametric: ParametricModel | None, parameters: NDArray[np.float64]) -> Any:
    """(…) whether parameters (…, nparameters) are physically possible."""
    return True if parametric is None else are_admissible(parametric.parts, parameters)
