"""Mass matrix and bias torques in the base frame, from sums over bodies that derivatives also need.

M_ij = S_iᵀ Y S_j with the inertia Y of the subtree of joint j, where j is a descendant of i or i itself. Torques are
S_iᵀ f with the force f on the subtree of joint i. In one common frame no quantity is transformed from link to link, and
derivatives in the same kernel share the sums. O(n d) operations for depth d. For M or torques alone, `crba` and `rnea`
in the frames of the links take fewer operations.
"""

from typing import Any

import delassus.numpy as np
from delassus.dynamics.tree.base_frame import Moving, external_in_base, moving_links
from delassus.dynamics.tree.sums import add_symmetric, add_torques, model_armature, total
from delassus.linalg.products import mirror
from delassus.model.links import Link, links_of
from delassus.model.model import Model


def mass_and_bias(model: Model, q: Any, v: Any, forces: Any = None) -> tuple[Any, Any]:
    """The mass matrix (nv, nv) and the torques (nv,) for zero acceleration."""
    tree = links_of(model)
    moving = moving_links(tree, q, v, np.zeros(model.nv), falling=True)
    composites = [rigid_body(link, moving[i]) for i, link in enumerate(tree.links)]
    force = [body_force(*composites[i], moving[i]) for i in range(len(composites))]
    for i, external in external_in_base(tree, moving, forces):
        force[i] = force[i] - external
    M, tau = np.array(np.diag(np.array(model_armature(model)))), np.zeros(model.nv)
    for i, link in reversed(list(enumerate(tree.links))):
        F = apply_inertia(*composites[i], moving[i].S)
        for j in tree.path(i):
            add_symmetric(M, tree.links[j], link, moving[j].S.T @ F)
        add_torques(tau, link, moving[i].S.T @ force[i])
        if link.parent >= 0:
            force[link.parent] = force[link.parent] + force[i]
            composites[link.parent] = total(composites[link.parent], composites[i])
    return M, tau


def rigid_body(link: Link, m: Moving) -> tuple[Any, Any, Any]:
    """A link's inertia in the base's frame, additive over bodies: mass, first moment h (3,), second moment J (3, 3)."""
    mass, I_c = link.inertia.mass, np.array(link.inertia.rotational)
    c = m.p + m.R @ np.array(link.inertia.com)
    h = mass * c
    return mass, h, mirror(m.R @ (0.5 * np.trace(I_c) * np.eye(3) - I_c) @ m.R.T + np.outer(c, h))


def moving_body(link: Link, m: Moving) -> tuple[Any, ...]:
    """Additive quantities of a moving link: mass, moments h and J, momentum P (3,), and K = Σ m u rᵀ (3, 3)."""
    mass, h, J = rigid_body(link, m)
    lin, ang = m.v[:3], m.v[3:]
    P = mass * lin + np.cross(ang, h)
    K = np.outer(lin, h) + np.stack([np.cross(ang, J[:, k]) for k in range(3)], axis=1)
    return mass, h, J, P, K


def coriolis_matrix_of(K: Any) -> Any:
    """The block 2 (tr K 1 - K) (3, 3) of B: B x = (-2 P × ω_x, 2 (tr K 1 - K) ω_x); see `rnea_derivatives`."""
    return 2.0 * (K[0, 0] + K[1, 1] + K[2, 2]) * np.eye(3) - 2.0 * K


def coriolis_forces(P: Any, coriolis: Any, X: Any) -> Any:
    """B X for motions X (6, n)."""
    twice = 2.0 * P
    return np.concatenate([np.stack([np.cross(x, twice) for x in X[3:].T], axis=1), coriolis @ X[3:]])


def body_force(mass: Any, h: Any, J: Any, m: Moving) -> Any:
    """The force (6,) that accelerates a link alone, about the base's origin."""
    lin, ang, acc, alpha = m.v[:3], m.v[3:], m.a[:3], m.a[3:]
    origin = acc + np.cross(ang, lin)  # the classical acceleration of the body's point at the origin
    f = mass * origin + np.cross(alpha, h) + np.cross(ang, np.cross(ang, h))
    n = np.cross(h, origin) + rotational_inertia(J) @ alpha - np.cross(ang, J @ ang)
    return np.concatenate([f, n])


def rotational_inertia(J: Any) -> Any:
    """The rotational inertia tr(J) 1 - J of second moments J (3, 3)."""
    xx, yy, zz = J[0, 0], J[1, 1], J[2, 2]
    return np.array([[yy + zz, -J[1, 0], -J[2, 0]], [-J[1, 0], zz + xx, -J[2, 1]], [-J[2, 0], -J[2, 1], xx + yy]])


def apply_inertia(mass: Any, h: Any, J: Any, X: Any) -> Any:
    """Y X for motions X (6, n)."""
    inertia, columns = rotational_inertia(J), []
    for k in range(X.shape[1]):
        lin, ang = X[:3, k], X[3:, k]
        columns.append(np.concatenate([mass * lin + np.cross(ang, h), inertia @ ang + np.cross(h, lin)]))
    return np.stack(columns, axis=1)
