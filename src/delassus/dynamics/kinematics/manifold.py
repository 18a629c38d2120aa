"""Configurations as points of a manifold: moving along a velocity, the way between two points, normalisation.

As Pinocchio's integrate and difference: `difference(q0, integrate(q0, v)) = v` for rotations below half a turn. The
angle of a revolute joint is not wrapped: its difference is the plain one.
"""

import math
from typing import Any

import delassus.numpy as np
from delassus.compiler.host.kernel import Floats, kernel
from delassus.model.joints import Motion
from delassus.model.model import Model
from delassus.spatial.placements import placement_exp, placement_log
from delassus.spatial.quaternions import (
    quaternion_conjugate,
    quaternion_exp,
    quaternion_log,
    quaternion_multiply,
    quaternion_normalize,
    quaternion_rotate,
    quaternion_to_rotation,
)


@kernel("(nq),(nv)->(nq)")
def integrate(model: Model, q: Any, v: Any) -> Floats:
    """The configuration (nq,) reached from q along the tangent vector v (nv,) (a velocity times a duration)."""
    return _joined(q, [_integrate(motion, q[i : i + motion.nq], v[j : j + motion.nv]) for motion, i, j in parts(model)])


@kernel("(nq),(nq)->(nv)")
def difference(model: Model, q0: Any, q1: Any) -> Floats:
    """The tangent vector (nv,) that leads from q0 to q1 in one unit of time.

    Spherical, free and planar joints take the shorter way round, at most half a turn; the angles of others are not
    wrapped.
    """
    return _joined(
        q0, [_difference(motion, q0[i : i + motion.nq], q1[i : i + motion.nq]) for motion, i, _ in parts(model)]
    )


@kernel("(nq),(nq),()->(nq)")
def interpolate(model: Model, q0: Any, q1: Any, share: Any) -> Floats:
    """The configuration (nq,) a share () of the way from q0 to q1: q0 for 0, q1 for 1; the way is `difference`'s."""
    return integrate(model, q0, share * difference(model, q0, q1))


@kernel("(nq)->(nq)")
def normalize(model: Model, q: Any) -> Floats:
    """The configuration (nq,) with its quaternions scaled to unit length."""
    return _joined(q, [_normalize(motion, q[i : i + motion.nq]) for motion, i, _ in parts(model)])


def coordinate_rates(model: Model, q: Any, v: Any) -> Any:
    """q̇ (nq,): how the coordinates change with the velocity v (nv,), linear in v; the tangent of `integrate`."""
    return _joined(q, [_rates(motion, q[i : i + motion.nq], v[j : j + motion.nv]) for motion, i, j in parts(model)])


def rates_per_velocity(model: Model, q: Any) -> Any:
    """∂q̇/∂v (nq, nv): turns derivatives by coordinates into those along tangent vectors."""
    if not model.nv:
        return np.zeros((model.nq, 0))
    return np.stack([coordinate_rates(model, q, np.eye(model.nv)[:, k]) for k in range(model.nv)], axis=1)


def _joined(q: Any, parts: list[Any]) -> Any:
    """The parts of all joints in a row; an empty array as q is one if there are none."""
    return np.concatenate(parts) if parts else q


def parts(model: Model) -> list[tuple[Motion, int, int]]:
    """Every elementary motion with coordinates of its own, and where its coordinates and velocities start."""
    parts, i, j = [], 0, 0
    for joint in model.independent:
        parts += [(motion, i + first_q, j + first_v) for motion, first_q, first_v in joint.kind.parts]
        i, j = i + joint.kind.nq, j + joint.kind.nv
    return parts


def _integrate(motion: Motion, q: Any, v: Any) -> Any:
    if motion is Motion.SPHERICAL:
        return quaternion_normalize(quaternion_multiply(q, quaternion_exp(v)))
    if motion is Motion.FREE:
        _, along = placement_exp(v)
        turned = quaternion_normalize(quaternion_multiply(q[3:], quaternion_exp(v[3:])))
        return np.concatenate([q[:3] + quaternion_rotate(q[3:], along), turned])
    if motion is Motion.PLANAR:
        _, along = placement_exp(_spatial(v))
        return np.concatenate([q[:2] + _turned(q[2], along), q[2:] + v[2:]])
    return q + v


def _rates(motion: Motion, q: Any, v: Any) -> Any:
    if motion is Motion.SPHERICAL:
        return quaternion_multiply(q, np.stack([0.5 * v[0], 0.5 * v[1], 0.5 * v[2], 0.0]))
    if motion is Motion.FREE:
        return np.concatenate([quaternion_rotate(q[3:], v[:3]), _rates(Motion.SPHERICAL, q[3:], v[3:])])
    if motion is Motion.PLANAR:
        return np.concatenate([_turned(q[2], v), v[2:]])
    return v


def _difference(motion: Motion, q0: Any, q1: Any) -> Any:
    if motion is Motion.SPHERICAL:
        return quaternion_log(quaternion_multiply(quaternion_conjugate(q0), q1))
    if motion is Motion.FREE:
        back = quaternion_conjugate(q0[3:])
        relative = quaternion_multiply(back, q1[3:])
        return placement_log(quaternion_to_rotation(relative), quaternion_rotate(back, q1[:3] - q0[:3]))
    if motion is Motion.PLANAR:
        return _planar_log(_turned(-q0[2], q1[:2] - q0[:2]), _wrapped(q1[2] - q0[2]))
    return q1 - q0


def _normalize(motion: Motion, q: Any) -> Any:
    if motion is Motion.SPHERICAL:
        return quaternion_normalize(q)
    return np.concatenate([q[:3], quaternion_normalize(q[3:])]) if motion is Motion.FREE else q


def _spatial(v: Any) -> Any:
    """A planar velocity (vx, vy, ω) as a spatial one."""
    return np.stack([v[0], v[1], 0.0, 0.0, 0.0, v[2]])


def _turned(angle: Any, p: Any) -> Any:
    """The first two components of p, turned by an angle."""
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([c * p[0] - s * p[1], s * p[0] + c * p[1]])


def _wrapped(angle: Any) -> Any:
    """The same angle between -π and π, as it is if it is there already."""
    return np.where(abs(angle) <= math.pi, angle, np.arctan2(np.sin(angle), np.cos(angle)))


def _planar_log(p: Any, angle: Any) -> Any:
    """(vx, vy, ω) that leads to (p, angle) in one unit of time: V⁻¹ p with V⁻¹ = [a, ω/2; -ω/2, a]."""
    half = 0.5 * angle
    near = abs(angle) < 1e-3
    safe = np.where(near, 1.0, half)
    a = np.where(near, 1.0 - half * half / 3.0, safe * np.cos(safe) / np.sin(safe))
    return np.stack([a * p[0] + half * p[1], a * p[1] - half * p[0], angle])
