"""The articulated-body algorithm: forward dynamics of a tree.

Solves M(q) a + c(q, v) = tau + Σ Jᵀ f_ext for a, without forming M, in O(n) operations: the method of choice for
forward dynamics. Reference: R. Featherstone, Rigid Body Dynamics Algorithms (2008), chapter 7; here in link frames,
with spatial vectors split into linear and angular parts and the articulated inertia into blocks (see `poses`).

With mimic joints, several joints share a coordinate and may be in different branches, so the recursion does not apply.
For such models, M is formed, and its sparse factors solve for a.
"""

from typing import Any

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.dynamics.forces.rnea import newton_euler
from delassus.dynamics.mass.factor import udu_solve
from delassus.dynamics.tree.articulated import free_joint
from delassus.dynamics.tree.check import check_inertias
from delassus.dynamics.tree.poses import Pair, poses_of
from delassus.dynamics.tree.recursion import FORCES, external_forces, joint_motions, link_velocities
from delassus.dynamics.tree.sweep import Inward, propagate_acceleration, world_acceleration
from delassus.model.links import links_of
from delassus.model.model import Model
from delassus.model.parts import WORLD


@kernel("(nq),(nv),(nv)->(nv)", inputs=FORCES)
def aba(model: Model, q: Traced, v: Traced, tau: Traced, *, forces: Traced = None) -> Floats:
    """Forward dynamics: the accelerations (nv,) [rad/s², m/s²] due to generalized forces. Cost: O(n).

    Args:
        model: The robot.
        q: Configuration (nq,) [rad, m].
        v: Velocity (nv,) [rad/s, m/s].
        tau: Generalized forces (nv,) [N·m, N].
        forces: External forces (njoints, 6) [N, N·m] on the bodies, each in its body's frame, linear first (input at
            run time).

    >>> robot = dl.load("double_pendulum")
    >>> q, v, tau = np.array([0.1, 0.2]), np.ones(2), np.zeros(2)
    >>> a = dl.aba(robot, q, v, tau)
    >>> bool(np.allclose(dl.rnea(robot, q, v, a), tau))
    True
    """
    tree = links_of(model)
    check_inertias(model)
    if tree.mimics:
        return udu_solve(model, q, tau - newton_euler(model, q, v, np.zeros(model.nv), forces))
    links, poses = tree.links, poses_of(tree, q)

    # Outward: velocities, and velocity-product accelerations b.
    velocity, b = link_velocities(tree, poses, joint_motions(tree, v))

    # Inward: articulated inertias A and bias forces p, transmitted to the parent through each joint.
    inward = Inward.of(tree, poses, velocity, b)
    for i, (f, n) in external_forces(tree, forces):
        inward.p[i] = (inward.p[i][0] - f, inward.p[i][1] - n)
    joints: list[Any] = [None] * len(links)
    driven_acceleration: list[Any] = [None] * len(links)  # D⁻¹ u
    for i, link in reversed(list(enumerate(links))):
        joints[i] = free_joint(link, inward.A[i])
        u = joints[i].force(tau, inward.p[i])
        driven_acceleration[i] = joints[i].push(u)
        inward.hand_on(i, joints[i], u)

    # Outward: accelerations.
    acceleration: dict[int, Pair] = {WORLD: world_acceleration(tree)}
    result = np.zeros(model.nv)
    for i, link in enumerate(links):
        a = propagate_acceleration(poses[i], acceleration[link.parent], b[i])
        joint_acceleration = result[joints[i].at] = joints[i].answer(driven_acceleration[i], a)
        acceleration[i] = joints[i].accelerate(a, joint_acceleration)
    return result
