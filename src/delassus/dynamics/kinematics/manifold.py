"""The configuration manifold: `integrate`, `difference`, interpolation, normalization.

As Pinocchio's integrate and difference: `difference(q0, integrate(q0, v)) = v` for rotations below half a turn. The
angle of a revolute joint is not wrapped: its difference is the plain one.
"""

from typing import Any

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.model.model import Model
from delassus.model.motions.motion import JointMotion


@kernel("(nq),(nv)->(nq)")
def integrate(model: Model, q: Traced, v: Traced) -> Floats:
    """The configuration (nq,) reached from q along the tangent vector v (nv,) (a velocity times a duration).

    >>> robot = dl.load("quadruped")
    >>> q = dl.integrate(robot, robot.neutral(), np.full(robot.nv, 0.1))
    >>> bool(np.isclose(np.linalg.norm(q[3:7]), 1.0))
    True
    """
    return _concatenate(
        q, [motion.integrate(q[i : i + motion.nq], v[j : j + motion.nv]) for motion, i, j in parts(model)]
    )


@kernel("(nq),(nq)->(nv)")
def difference(model: Model, q0: Traced, q1: Traced) -> Floats:
    """The tangent vector (nv,) that leads from q0 to q1 in one unit of time.

    Spherical, free and planar joints take the shorter way round, at most half a turn; the angles of others are not
    wrapped.

    >>> robot = dl.load("quadruped")
    >>> q, delta = robot.posture("home"), np.full(robot.nv, 0.1)
    >>> bool(np.allclose(dl.difference(robot, q, dl.integrate(robot, q, delta)), delta))
    True
    """
    return _concatenate(
        q0, [motion.difference(q0[i : i + motion.nq], q1[i : i + motion.nq]) for motion, i, _ in parts(model)]
    )


@kernel("(nq),(nq),()->(nq)")
def interpolate(model: Model, q0: Traced, q1: Traced, share: Traced) -> Floats:
    """The configuration (nq,) a share () of the way from q0 to q1: q0 for 0, q1 for 1; the way is `difference`'s.

    >>> dl.dynamics.interpolate(dl.load("pendulum"), [0.0], [1.0], 0.25)
    array([0.25])
    """
    return integrate(model, q0, share * difference(model, q0, q1))


@kernel("(nq)->(nq)")
def normalize(model: Model, q: Traced) -> Floats:
    """The configuration (nq,) with its quaternions scaled to unit length.

    >>> robot = dl.load("quadruped")
    >>> q = dl.dynamics.normalize(robot, 2.0 * robot.neutral())
    >>> bool(np.isclose(np.linalg.norm(q[3:7]), 1.0))
    True
    """
    return _concatenate(q, [motion.normalize(q[i : i + motion.nq]) for motion, i, _ in parts(model)])


def coordinate_rates(model: Model, q: Any, v: Any) -> Any:
    """q̇ (nq,): how the coordinates change with the velocity v (nv,), linear in v; the tangent of `integrate`."""
    return _concatenate(q, [motion.rates(q[i : i + motion.nq], v[j : j + motion.nv]) for motion, i, j in parts(model)])


def rates_per_velocity(model: Model, q: Any) -> Any:
    """∂q̇/∂v (nq, nv): turns derivatives by coordinates into those along tangent vectors."""
    if not model.nv:
        return np.zeros((model.nq, 0))
    return np.stack([coordinate_rates(model, q, np.eye(model.nv)[:, k]) for k in range(model.nv)], axis=1)


def _concatenate(q: Any, parts: list[Any]) -> Any:
    """The parts of all joints in a row; an empty array as q is one if there are none."""
    return np.concatenate(parts) if parts else q


def parts(model: Model) -> list[tuple[JointMotion, int, int]]:
    """Every elementary motion with coordinates of its own, and where its coordinates and velocities start."""
    parts, i, j = [], 0, 0
    for joint in model.independent:
        parts += [(motion, i + first_q, j + first_v) for motion, first_q, first_v in joint.kind.parts]
        i, j = i + joint.kind.nq, j + joint.kind.nv
    return parts
