"""The articulated-body algorithm: accelerations of a tree from its torques.

Solves M(q) a + c(q, v) = tau for a, without forming M, in O(n) operations: the method of choice for forward
dynamics. Reference: R. Featherstone, Rigid Body Dynamics Algorithms (2008), chapter 7; here in link frames, with
spatial vectors split into linear and angular halves and the articulated inertia into blocks (see `poses`).

A model whose joints mimic others has fewer coordinates than joints, and the joints that share a coordinate may sit
in different branches, so the recursion over the tree does not apply: there M is formed, and its sparse factors
solve for a.
"""

from typing import Any

import delassus.numpy as np
from delassus.compiler.kernel import kernel
from delassus.dynamics.check import check_inertias
from delassus.dynamics.factor import udu_solve
from delassus.dynamics.poses import Blocks, mirrored, poses_of, rigid_blocks
from delassus.dynamics.recursion import bias_force, joint_motions, link_velocities
from delassus.dynamics.rnea import bias_torques
from delassus.model.joints import Motion
from delassus.model.links import Link, links_of
from delassus.model.model import Model


@kernel("(nq),(nv),(nv)->(nv)")
def aba(model: Model, q: Any, v: Any, tau: Any) -> Any:
    """Accelerations (nv,) [rad/s², m/s²].

    Args:
        model: The robot.
        q: Configuration (nq,) [rad, m].
        v: Velocity (nv,) [rad/s, m/s].
        tau: Generalised forces (nv,) [N·m, N].
    """
    tree = links_of(model)
    check_inertias(model)
    if tree.mimics:
        return udu_solve(model, q, tau - bias_torques(model, q, v))
    links, poses = tree.links, poses_of(tree, q)

    # Outward: velocities, velocity-product accelerations b, bias forces p, rigid inertias A.
    velocity, b = link_velocities(tree, poses, joint_motions(tree, v))
    p = [bias_force(link, *velocity[i]) for i, link in enumerate(links)]
    A = [rigid_blocks(link) for link in links]

    # Inward: articulated inertias and bias forces, felt through each joint and carried to the parent.
    W: list[Any] = [None] * len(links)  # U D⁻¹ and D⁻¹ u, which the last pass needs
    push: list[Any] = [None] * len(links)
    for i, link in reversed(list(enumerate(links))):
        S_lin, S_ang = link.subspace
        M, H, I = A[i]
        U = np.concatenate([M @ S_lin + H @ S_ang, H.T @ S_lin + I @ S_ang])
        D = S_lin.T @ U[:3] + S_ang.T @ U[3:] + np.array(np.diag(link.armature))
        u = tau[link.v : link.v + link.motion.nv] - S_lin.T @ p[i][0] - S_ang.T @ p[i][1]
        W[i], push[i] = _solve_joint(link, D, U, u)
        if link.parent < 0:
            continue
        M, H, I = _felt_through(link, A[i], U, W[i])
        f = p[i][0] + M @ b[i][0] + H @ b[i][1] + W[i][:3] @ u
        n = p[i][1] + H.T @ b[i][0] + I @ b[i][1] + W[i][3:] @ u
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
        a = push[i] - W[i][:3].T @ lin - W[i][3:].T @ ang
        acceleration.append((lin + S_lin @ a, ang + S_ang @ a))
        result[link.v : link.v + link.motion.nv] = a
    return result


def _is_plain(link: Link) -> bool:
    """Whether the joint's directions are axes of the link and nothing is added to D, which makes SᵀW = 1 exact."""
    return link.motion is not Motion.HELICAL and not any(link.armature)


def _solve_joint(link: Link, D: Any, U: Any, u: Any) -> tuple[Any, Any]:
    """W = U D⁻¹ (6, n) and D⁻¹ u (n,)."""
    n = link.motion.nv
    directions = list(link.motion.directions)
    others = [r for r in range(6) if r not in directions] if _is_plain(link) else list(range(6))
    if n == 1:
        D_inv = 1.0 / D[0, 0]
        W, push = U * D_inv, u * D_inv
    else:
        right = np.concatenate([U[others].T, u[:, None]], axis=1)
        X = np.linalg.solve(D, right, assume_a="pos")
        W, push = np.zeros((6, n)), X[:, -1]
        for k, row in enumerate(others):
            W[row] = X[:, k]
    if _is_plain(link):
        for k, row in enumerate(directions):
            W[row] = np.eye(n)[k]
    return W, push


def _felt_through(link: Link, A: Blocks, U: Any, W: Any) -> Blocks:
    """A - U D⁻¹ Uᵀ: the inertia felt through the free joint; nothing along its own directions."""
    M, H, I = A
    M, H, I = (
        mirrored(M - W[:3] @ U[:3].T),
        np.array(H - W[:3] @ U[3:].T),
        mirrored(I - W[3:] @ U[3:].T),
    )
    if _is_plain(link):
        for d in link.motion.directions:
            if d < 3:
                M[d, :] = M[:, d] = H[d, :] = 0.0
            else:
                I[d - 3, :] = I[:, d - 3] = H[:, d - 3] = 0.0
    return M, H, I
