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
    """The configuration (nq,) q0 ⊕ share (q1 ⊖ q0): q0 for a share () of 0, q1 for 1.

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
    """q̇ (nq,): the rate of the coordinates at the velocity v (nv,), linear in v; the tangent of `integrate`."""
    return _concatenate(q, [motion.rates(q[i : i + motion.nq], v[j : j + motion.nv]) for motion, i, j in parts(model)])


def rates_per_velocity(model: Model, q: Any) -> Any:
    """∂q̇/∂v (nq, nv): converts derivatives with respect to coordinates to derivatives along tangent vectors."""
    if not model.nv:
        return np.zeros((model.nq, 0))
    return np.stack([coordinate_rates(model, q, np.eye(model.nv)[:, k]) for k in range(model.nv)], axis=1)


def _concatenate(q: Any, parts: list[Any]) -> Any:
    """The concatenated parts of all joints; q, which is then empty, if there are none."""
    return np.concatenate(parts) if parts else q


def parts(model: Model) -> list[tuple[JointMotion, int, int]]:
    """Elementary motions of the joints that do not mimic, with the starts of their coordinates and velocities."""
    parts, i, j = [], 0, 0
    for joint in model.independent:
        parts += [(motion, i + first_q, j + first_v) for motion, first_q, first_v in joint.kind.parts]
        i, j = i + joint.kind.nq, j + joint.kind.nv
    return parts
