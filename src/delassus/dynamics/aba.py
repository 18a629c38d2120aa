"""The articulated-body algorithm: accelerations of a tree from its torques.

Solves M(q) a + c(q, v) = tau + Σ Jᵀ f_ext for a, without forming M, in O(n) operations: the method of choice for
forward dynamics. Reference: R. Featherstone, Rigid Body Dynamics Algorithms (2008), chapter 7; here in link frames,
with spatial vectors split into linear and angular halves and the articulated inertia into blocks (see `poses`).

A model whose joints mimic others has fewer coordinates than joints, and the joints that share a coordinate may sit
in different branches, so the recursion over the tree does not apply: there M is formed, and its sparse factors
solve for a.
"""

from typing import Any

import delassus.numpy as np
from delassus.compiler.kernel import kernel
from delassus.dynamics.articulated import free_joint
from delassus.dynamics.check import check_inertias
from delassus.dynamics.factor import udu_solve
from delassus.dynamics.poses import poses_of, rigid_blocks
from delassus.dynamics.recursion import FORCES, bias_force, external_forces, joint_motions, link_velocities
from delassus.dynamics.rnea import newton_euler
from delassus.model.links import links_of
from delassus.model.model import Model


@kernel("(nq),(nv),(nv)->(nv)", inputs=FORCES)
def aba(model: Model, q: Any, v: Any, tau: Any, *, forces: Any = None) -> Any:
    """Accelerations (nv,) [rad/s², m/s²].

    Args:
        model: The robot.
        q: Configuration (nq,) [rad, m].
        v: Velocity (nv,) [rad/s, m/s].
        tau: Generalised forces (nv,) [N·m, N].
        forces: External forces (njoints, 6) [N, N·m] on the bodies, each in its body's frame, linear first (input at
            run time).
    """
    tree = links_of(model)
    check_inertias(model)
    if tree.mimics:
        return udu_solve.function(model, q, tau - newton_euler(model, q, v, np.zeros(model.nv), forces))
    links, poses = tree.links, poses_of(tree, q)

    # Outward: velocities, velocity-product accelerations b, bias forces p, rigid inertias A.
    velocity, b = link_velocities(tree, poses, joint_motions(tree, v))
    p = [bias_force(link, *velocity[i]) for i, link in enumerate(links)]
    for i, (f, n) in external_forces(tree, forces):
        p[i] = (p[i][0] - f, p[i][1] - n)
    A = [rigid_blocks(link) for link in links]

    # Inward: articulated inertias and bias forces, felt through each joint and carried to the parent.
    joints: list[Any] = [None] * len(links)
    push: list[Any] = [None] * len(links)  # D⁻¹ u
    for i, link in reversed(list(enumerate(links))):
        S_lin, S_ang = link.subspace
        joints[i] = free_joint(link, A[i])
        u = tau[link.v : link.v + link.motion.nv] - S_lin.T @ p[i][0] - S_ang.T @ p[i][1]
        push[i] = joints[i].push(u)
        if link.parent < 0:
            continue
        M, H, I = joints[i].felt_through(A[i])
        f = p[i][0] + M @ b[i][0] + H @ b[i][1] + joints[i].W[:3] @ u
        n = p[i][1] + H.T @ b[i][0] + I @ b[i][1] + joints[i].W[3:] @ u
        f_parent, n_parent = poses[i].force_to_parent(f, n)
        p[link.parent] = (p[link.parent][0] + f_parent, p[link.parent][1] + n_parent)
        M_parent, H_parent, I_parent = A[link.parent]
        M, H, I = poses[i].inertia_to_parent(M, H, I)
        A[link.parent] = (M_parent + M, H_parent + H, I_parent + I)

    # Outward: accelerations. The world accelerates against gravity, which spares a gravity force per link.
    acceleration: list[Any] = []
    result = np.zeros(model.nv)
    for i, link in enumerate(links):
        S_lin, S_ang = link.subspace
        at_parent = (-np.array(tree.gravity), np.zeros(3)) if link.parent < 0 else acceleration[link.parent]
        lin, ang = poses[i].motion_to_child(*at_parent)
        lin, ang = lin + b[i][0], ang + b[i][1]
        a = push[i] - joints[i].W[:3].T @ lin - joints[i].W[3:].T @ ang
        acceleration.append((lin + S_lin @ a, ang + S_ang @ a))
        result[link.v : link.v + link.motion.nv] = a
    return result
