"""Derivatives of inverse dynamics with respect to configuration, velocity and acceleration.

The derivative with respect to q is along tangent vectors, q ⊕ δ with ⊕ = `integrate`: one column per velocity. Let s be
a column of the motion subspace S of joint i, in a fixed frame, and π the parent. A displacement s δ of the joint moves
its subtree as a rigid body. Relative to this motion, velocities and accelerations of the subtree change by V = v_π × s
and A_q = a_π × s + v_π × V. A change of the joint's velocity changes accelerations by A_v = v_i × s + V. With the
inertia Y and the matrix B of the subtree, the force through the joint changes by

    F_q = Y A_q + B V,    F_v = Y A_v + B s,    F_a = Y s.

The torque of an ancestor j changes by S_jᵀ F, where F_q has the additional term s ×* f for the rotation of the force f.
The torque of a descendant k changes by s_kᵀ (Y A + B V) with the Y and B of k's subtree. O(n d) operations for depth d.
References: J. Carpentier, N. Mansard, Analytical derivatives of rigid body dynamics algorithms (2018); S. Singh,
R. Russell, P. Wensing, Efficient analytical derivatives of rigid-body dynamics using spatial vector algebra (2022).

B x = v ×* Y x - Y (v × x) + x ×* Y v is summed over the bodies. For a particle of velocity u it is the Coriolis force
2 m ω_x × u, which does not depend on the linear part of x. So B is determined by twelve numbers: the linear momentum P
and the matrix K = Σ m u rᵀ.
"""

from typing import Any

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.dynamics.mass.composite import apply_inertia, body_force, coriolis_forces, coriolis_matrix_of, moving_body
from delassus.dynamics.tree.base_frame import Moving, external_in_base, moving_links
from delassus.dynamics.tree.recursion import FORCES
from delassus.dynamics.tree.sums import add_block, add_symmetric, model_armature, total
from delassus.model.links import Link, links_of
from delassus.model.model import Model
from delassus.spatial.motions import force_cross, motion_cross


@kernel("(nq),(nv),(nv)->(nv,nv),(nv,nv),(nv,nv)", inputs=FORCES)
def rnea_derivatives(
    model: Model, q: Traced, v: Traced, a: Traced, *, forces: Traced = None
) -> tuple[Floats, Floats, Floats]:
    """Derivatives (nv, nv) of `rnea`: ∂tau/∂q along tangent vectors, ∂tau/∂v, and ∂tau/∂a, the mass matrix.

    Args:
        model: The robot.
        q: Configuration (nq,) [rad, m].
        v: Velocity (nv,) [rad/s, m/s].
        a: Acceleration (nv,) [rad/s², m/s²].
        forces: (njoints, 6) [N, N·m] on the bodies, as in `rnea`, constant in their frames (input at run time).

    >>> robot, q, v, a = dl.load("double_pendulum"), np.zeros(2), np.ones(2), np.zeros(2)
    >>> by_q, by_v, M = dl.derivatives.rnea_derivatives(robot, q, v, a)
    >>> bool(np.allclose(M, dl.crba(robot, q)))
    True
    """
    return torque_derivatives(model, q, v, a, forces=forces)


def torque_derivatives(
    model: Model, q: Any, v: Any, a: Any, *, forces: Any = None, falling: bool = True
) -> tuple[Any, Any, Any]:
    """`rnea_derivatives` as a part of other kernels; gravity is included if `falling`."""
    tree = links_of(model)
    links, moving = tree.links, moving_links(tree, q, v, a, falling=falling)
    composites = [_body(link, moving[i]) for i, link in enumerate(links)]
    for i, external in external_in_base(tree, moving, forces):  # fixed in the bodies, as all of f
        *inertial_terms, f = composites[i]
        composites[i] = (*inertial_terms, f - external)
    A_q, V, A_v = ([_columns(change, link, moving[i]) for i, link in enumerate(links)] for change in (_A_q, _V, _A_v))
    by_q, by_v = np.zeros((model.nv, model.nv)), np.zeros((model.nv, model.nv))
    M = np.array(np.diag(np.array(model_armature(model))))
    for i, link in reversed(list(enumerate(links))):
        mass, h, J, P, K, f = composites[i]
        S, Y = moving[i].S, (mass, h, J)
        coriolis = coriolis_matrix_of(K)
        F_a = apply_inertia(*Y, S)
        F_q = apply_inertia(*Y, A_q[i]) + coriolis_forces(P, coriolis, V[i])
        F_v = apply_inertia(*Y, A_v[i]) + coriolis_forces(P, coriolis, S)
        add_block(by_q, link, link, S.T @ F_q)
        add_block(by_v, link, link, S.T @ F_v)
        add_symmetric(M, link, link, S.T @ F_a)
        n = link.motion.nv
        F_q = F_q + np.stack([force_cross(S[:, k], f) for k in range(n)], axis=1)
        # the angular rows of Bᵀ S
        angular_rows = coriolis.T @ S[3:] - 2.0 * np.stack([np.cross(S[:3, k], P) for k in range(n)], axis=1)
        for j in tree.path(i)[:-1]:
            S_j, above = moving[j].S, links[j]
            add_block(by_q, above, link, S_j.T @ F_q)
            add_block(by_v, above, link, S_j.T @ F_v)
            add_block(by_q, link, above, F_a.T @ A_q[j] + angular_rows.T @ V[j][3:])
            add_block(by_v, link, above, F_a.T @ A_v[j] + angular_rows.T @ S_j[3:])
            add_symmetric(M, above, link, S_j.T @ F_a)
        if link.parent >= 0:
            composites[link.parent] = total(composites[link.parent], composites[i])
    return by_q, by_v, M


def _V(link: Link, m: Moving, s: Any) -> Any:
    return motion_cross(m.v_parent, s)


def _A_q(link: Link, m: Moving, s: Any) -> Any:
    return motion_cross(m.a_parent, s) + motion_cross(m.v_parent, motion_cross(m.v_parent, s))


def _A_v(link: Link, m: Moving, s: Any) -> Any:
    V = motion_cross(m.v_parent, s)
    return 2.0 * V if link.motion.nv == 1 else V + motion_cross(m.v, s)  # v_i × s = v_π × s if s is all of S


def _columns(change: Any, link: Link, m: Moving) -> Any:
    """`change` for every column of S, (6, n)."""
    return np.stack([change(link, m, m.S[:, k]) for k in range(link.motion.nv)], axis=1)


def _body(link: Link, m: Moving) -> tuple[Any, ...]:
    """The quantities of a link that are summed over subtrees: mass, moments h and J, momentum P, K, and the force f."""
    mass, h, J, P, K = moving_body(link, m)
    return mass, h, J, P, K, body_force(mass, h, J, m)
