"""The centroidal momentum matrix: momentum about the center of mass as a linear map of the velocities, and its rate.

h = A(q) v is the linear and angular momentum about the center of mass c, in the world's axes. The column of a joint's
motion s is Y s, with the inertia Y of the joint's subtree and the moment about c. The rate of h is A a + Ȧ v. The rate
of a column has the terms Ẏ s + Y (v × s), and one for the velocity of c. O(n) operations.
Reference: D. Orin, A. Goswami, S. Lee, Centroidal dynamics of a humanoid robot (2013).
"""

from typing import Any

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.dynamics.kinematics.kinematics import world_poses
from delassus.dynamics.mass.centroid import total_mass
from delassus.dynamics.mass.composite import apply_inertia, moving_body, rigid_body
from delassus.dynamics.tree.base_frame import Moving
from delassus.dynamics.tree.poses import velocities
from delassus.model.links import Links, links_of
from delassus.model.model import Model
from delassus.spatial.motions import motion_cross


@kernel("(nq)->(6,nv)")
def centroidal_momentum_matrix(model: Model, q: Traced) -> Floats:
    """A (6, nv): A v is the linear and angular momentum [kg·m/s, kg·m²/s] about the center of mass, in world axes.

    >>> robot, q, v = dl.load("double_pendulum"), np.array([0.1, 0.2]), np.ones(2)
    >>> A = dl.dynamics.centroidal_momentum_matrix(robot, q)
    >>> bool(np.allclose(A @ v, dl.dynamics.centroidal_momentum(robot, q, v)))
    True
    """
    tree = links_of(model)
    total, moving = total_mass(model, tree), _in_world(tree, q, np.zeros(model.nv))
    bodies = _composites(tree, [rigid_body(link, m) for link, m in zip(tree.links, moving, strict=True)])
    center = _of_roots(tree, [h for _, h, _ in bodies]) / total
    A = np.zeros((6, model.nv))
    for link, m, (mass, h, J) in zip(tree.links, moving, bodies, strict=True):
        for k, F in enumerate(apply_inertia(mass, h, J, m.S).T):
            A[:, link.v + k] = A[:, link.v + k] + _about(center, F) * link.ratio
    return A


@kernel("(nq),(nv)->(6,nv)")
def centroidal_momentum_matrix_rate(model: Model, q: Traced, v: Traced) -> Floats:
    """Ȧ (6, nv), the rate of `centroidal_momentum_matrix`: momentum changes by A a + Ȧ v.

    Ȧ is the time derivative of A. Pinocchio's matrix omits the motion of the center of mass, which cancels in Ȧ v.

    >>> dl.dynamics.centroidal_momentum_matrix_rate(dl.load("double_pendulum"), np.zeros(2), np.ones(2)).shape
    (6, 2)
    """
    tree = links_of(model)
    total, moving = total_mass(model, tree), _in_world(tree, q, v)
    bodies = _composites(tree, [moving_body(link, m) for link, m in zip(tree.links, moving, strict=True)])
    center = _of_roots(tree, [h for _, h, *_ in bodies]) / total
    velocity = _of_roots(tree, [P for *_, P, _ in bodies]) / total
    A = np.zeros((6, model.nv))
    for link, m, (mass, h, J, P, K) in zip(tree.links, moving, bodies, strict=True):
        S_rate = np.stack([motion_cross(m.v, s) for s in m.S.T], axis=1)
        momenta = apply_inertia(mass, h, J, m.S)
        rates = apply_inertia(mass, h, J, S_rate) + apply_inertia(0.0, P, K + K.T, m.S)
        for k in range(link.motion.nv):
            F, rate = momenta[:, k], _about(center, rates[:, k])
            rate = np.concatenate([rate[:3], rate[3:] - np.cross(velocity, F[:3])])
            A[:, link.v + k] = A[:, link.v + k] + rate * link.ratio
    return A


def _in_world(tree: Links, q: Any, v: Any) -> list[Moving]:
    """Every link in the world's frame; accelerations are left out."""
    zero = np.zeros(6)
    moving: list[Moving] = []
    for link, (R, p) in zip(tree.links, world_poses(tree, q), strict=True):
        S_lin, S_ang = link.subspace
        ang = R @ S_ang
        lin = R @ S_lin + np.stack([np.cross(p, ang[:, k]) for k in range(link.motion.nv)], axis=1)
        S = np.concatenate([lin, ang])
        v_parent = zero if link.parent < 0 else moving[link.parent].v
        moving.append(Moving(R, p, S, v_parent + S @ velocities(link, v), zero, v_parent, zero))
    return moving


def _composites(tree: Links, bodies: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Sums of body quantities over the subtree of each joint."""
    composites = list(bodies)
    for i, link in reversed(list(enumerate(tree.links))):
        if link.parent >= 0:
            composites[link.parent] = tuple(x + y for x, y in zip(composites[link.parent], composites[i], strict=True))
    return composites


def _of_roots(tree: Links, composites: list[Any]) -> Any:
    """The sum of subtree quantities over the roots of all trees."""
    total = np.zeros(3)
    for link, x in zip(tree.links, composites, strict=True):
        total = total + x if link.parent < 0 else total
    return total


def _about(center: Any, F: Any) -> Any:
    """Transform a momentum (6,) about the world's origin to one about `center`."""
    return np.concatenate([F[:3], F[3:] - np.cross(center, F[:3])])
