"""Conversion of configurations, velocities, accelerations and forces to and from MuJoCo's layout.

Both order joints the same way, and joints with one coordinate have the same value in both. Quaternions are (w, x, y, z)
in MuJoCo and (x, y, z, w) here. The linear velocity of a free joint is in world axes in MuJoCo and in body axes here;
the angular velocity is in body axes in both. All functions accept batches.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delassus.errors import BadArgument
from delassus.model.model import Model
from delassus.model.motions.motion import JointMotion

Array = NDArray[np.float64]


def q_to_mujoco(model: Model, q: ArrayLike) -> Array:
    """Configurations (…, nq) in MuJoCo's layout, `qpos`.

    >>> robot = dl.load("quadruped")
    >>> dl.mujoco.q_to_mujoco(robot, robot.neutral())[3:7]      # w first
    array([1., 0., 0., 0.])
    """
    result = _check_shape("configuration", model, q, model.nq).copy()
    for start in _quaternions(model):
        result[..., start : start + 4] = np.roll(result[..., start : start + 4], 1, -1)
    return result


def q_from_mujoco(model: Model, q: ArrayLike) -> Array:
    """Configurations in MuJoCo's layout, `qpos`, as (…, nq).

    >>> robot = dl.load("quadruped")
    >>> q = robot.posture("home")
    >>> bool(np.array_equal(dl.mujoco.q_from_mujoco(robot, dl.mujoco.q_to_mujoco(robot, q)), q))
    True
    """
    result = _check_shape("configuration", model, q, model.nq).copy()
    for start in _quaternions(model):
        result[..., start : start + 4] = np.roll(result[..., start : start + 4], -1, -1)
    return result


def v_to_mujoco(model: Model, q: ArrayLike, v: ArrayLike) -> Array:
    """Velocities (…, nv) at configurations q (…, nq) in MuJoCo's layout, `qvel`. Generalized forces transform likewise.

    >>> robot = dl.load("quadruped")
    >>> dl.mujoco.v_to_mujoco(robot, robot.neutral(), np.ones(robot.nv)).shape
    (18,)
    """
    return _rotate_free_joints(model, q, v, "velocity", to_world=True)


def v_from_mujoco(model: Model, q: ArrayLike, v: ArrayLike) -> Array:
    """Velocities in MuJoCo's layout, `qvel`, as (…, nv), at q (…, nq) of this library. Generalized forces transform
    likewise.

    >>> robot = dl.load("quadruped")
    >>> dl.mujoco.v_from_mujoco(robot, robot.neutral(), np.ones(robot.nv)).shape
    (18,)
    """
    return _rotate_free_joints(model, q, v, "velocity", to_world=False)


def a_to_mujoco(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    """Accelerations (…, nv) at (q, v) in MuJoCo's layout, `qacc`: the rate of R u is R (du/dt + ω × u).

    >>> robot = dl.load("quadruped")
    >>> dl.mujoco.a_to_mujoco(robot, robot.neutral(), np.ones(robot.nv), np.ones(robot.nv)).shape
    (18,)
    """
    acceleration = _check_shape("acceleration", model, a, model.nv) + _bias(model, v)
    return _rotate_free_joints(model, q, acceleration, "acceleration", to_world=True)


def a_from_mujoco(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    """Accelerations in MuJoCo's layout, `qacc`, as (…, nv), at q and v (…, nv) of this library.

    >>> robot = dl.load("quadruped")
    >>> dl.mujoco.a_from_mujoco(robot, robot.neutral(), np.ones(robot.nv), np.ones(robot.nv)).shape
    (18,)
    """
    return _rotate_free_joints(model, q, a, "acceleration", to_world=False) - _bias(model, v)


def _bias(model: Model, v: ArrayLike) -> Array:
    """ω × u for the linear velocity u of every free joint, zero elsewhere."""
    v = _check_shape("velocity", model, v, model.nv)
    bias = np.zeros_like(v)
    for _, start in _free_joints(model):
        bias[..., start : start + 3] = np.cross(v[..., start + 3 : start + 6], v[..., start : start + 3])
    return bias


def _rotate_free_joints(model: Model, q: ArrayLike, v: ArrayLike, label: str, to_world: bool) -> Array:
    """Rotate the linear parts of free joints from body axes to world axes, or back."""
    q, v = _check_shape("configuration", model, q, model.nq), _check_shape(label, model, v, model.nv)
    batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    result = np.broadcast_to(v, (*batch, model.nv)).copy()
    for at, start in _free_joints(model):
        vector, w = q[..., at + 3 : at + 6], q[..., at + 6 : at + 7]
        linear = result[..., start : start + 3]
        axis = vector if to_world else -vector
        twice = 2.0 * np.cross(axis, linear)
        result[..., start : start + 3] = linear + w * twice + np.cross(axis, twice)
    return result


def _free_joints(model: Model) -> Iterator[tuple[int, int]]:
    """The offsets of every free joint in coordinates and velocities."""
    return ((q, v) for motion, q, v in _motions(model) if motion.is_free)


def _quaternions(model: Model) -> Iterator[int]:
    """The offset of every quaternion."""
    return (q + motion.nq - 4 for motion, q, _ in _motions(model) if motion.has_quaternion)


def _motions(model: Model) -> Iterator[tuple[JointMotion, int, int]]:
    """Every elementary motion, and its offsets in coordinates and velocities."""
    for joint, q, v in zip(model.joints, model.q_starts, model.v_starts, strict=True):
        for motion, i, j in joint.kind.parts:
            yield motion, q + i, v + j


def _check_shape(label: str, model: Model, x: ArrayLike, count: int) -> Array:
    array = np.asarray(x, float)
    if array.ndim == 0 or array.shape[-1] != count:
        raise BadArgument(
            f"{label} of {model.name!r}: it has shape {array.shape}; its last axis must have {count} values.",
            code="wrong-shape",
        )
    return array
