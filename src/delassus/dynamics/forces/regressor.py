"""The joint-torque regressor: torques are linear in the inertial parameters of the bodies.

tau = Y(q, v, a) π + armature · a, where π has ten numbers for each body: mass m, first moments m c (3,) and the
rotational inertia about the origin of the body's frame, in the order I_xx, I_xy, I_yy, I_xz, I_yz, I_zz, as Pinocchio
has them. With the classical acceleration a of the body's origin, relative to free fall, and B = α× + ω× ω× (see
`rnea`), the force and the moment at the origin are f = m a + B (m c) and n = (m c) × a + I α + ω × I ω. The torques of
the joints between the body and the root are Sᵀ (f, n). O(n d) blocks of ten for depth d.
"""

from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.dynamics.forces.rnea import point_accelerations
from delassus.dynamics.tree.base_frame import Moving, moving_links
from delassus.dynamics.tree.poses import fixed_pose
from delassus.dynamics.tree.sums import add_torques
from delassus.model.links import links_of
from delassus.model.model import Model
from delassus.model.placement import Placement
from delassus.spatial.rotations import skew

INERTIAS: Final = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
"""The elements of the rotational inertia, in the order of the parameters."""


@kernel("(nq),(nv),(nv)->(nv,ninertial)")
def torque_regressor(model: Model, q: Traced, v: Traced, a: Traced) -> Floats:
    """The matrix Y (nv, 10 njoints) that maps inertial parameters to the torques of `rnea` without those of armature.

    Args:
        model: The robot; its inertias do not matter.
        q: Configuration (nq,) [rad, m].
        v: Velocity (nv,) [rad/s, m/s].
        a: Acceleration (nv,) [rad/s², m/s²].

    >>> robot = dl.load("double_pendulum")
    >>> Y = dl.dynamics.torque_regressor(robot, np.zeros(2), np.ones(2), np.ones(2))
    >>> Y.shape == (robot.nv, robot.ninertial)
    True
    """
    tree = links_of(model)
    moving = moving_links(tree, q, v, a, falling=True)
    Y = np.zeros((model.nv, 10 * model.njoints))
    for body, (i, placement) in enumerate(tree.bodies):
        forces = _forces(moving[i], placement)
        rows_of_link = np.zeros((model.nv, 10))
        for j in tree.path(i):
            add_torques(rows_of_link, tree.links[j], moving[j].S.T @ forces)
        Y[:, 10 * body : 10 * body + 10] = rows_of_link
    return Y


def _forces(link: Moving, placement: Placement) -> Any:
    """The forces (6, 10) in the base's frame that accelerate a body, for a unit of each of its ten parameters."""
    R, p = fixed_pose(placement).compose(link.R, link.p)
    omega, alpha = R.T @ link.v[3:], R.T @ link.a[3:]
    spatial = link.a[:3] + np.cross(link.v[3:], link.v[:3])  # of the body's point at the base's origin
    B = point_accelerations(omega, alpha)
    origin = R.T @ spatial + B @ (R.T @ p)
    local_forces = np.concatenate([origin[:, None], B], axis=1)
    local_moments = np.concatenate([np.zeros((3, 1)), -skew(origin)], axis=1)
    inertial_moments = []
    for i, j in INERTIAS:
        unit = numpy.zeros((3, 3))
        unit[i, j] = unit[j, i] = 1.0
        inertial_moments.append(unit @ alpha + np.cross(omega, unit @ omega))
    f = R @ local_forces
    n = R @ local_moments + np.stack([np.cross(p, f[:, k]) for k in range(4)], axis=1)
    couples = R @ np.stack(inertial_moments, axis=1)
    return np.concatenate([np.concatenate([f, np.zeros((3, 6))], axis=1), np.concatenate([n, couples], axis=1)])
