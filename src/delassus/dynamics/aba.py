"""The articulated-body algorithm: accelerations of a tree from its torques.

Solves M(q) a + c(q, v) = tau for a, without forming M, in O(n) operations: the method of choice for forward
dynamics. Reference: R. Featherstone, Rigid Body Dynamics Algorithms (2008), chapter 7; here in body frames, with
spatial vectors split into their linear and angular halves and the articulated inertia into 3×3 blocks,

    [f]   [M   H] [a]
    [n] = [Hᵀ  I] [α]    at the origin of the link's frame.
"""

import math
from typing import Any

import numpy

import delassus.numpy as np
from delassus.compiler.kernel import kernel
from delassus.model.tree import Link, Tree
from delassus.spatial.turns import Turn, turn, turn_back, turn_matrix, zxz

Z = 2  # every joint turns about the z axis of its link


@kernel("(nq),(nv),(nv)->(nv)")
def aba(model: Tree, q: Any, v: Any, tau: Any) -> Any:
    """Joint accelerations (nv,) [rad/s²].

    Args:
        model: The tree.
        q: Joint angles (nq,) [rad].
        v: Joint velocities (nv,) [rad/s].
        tau: Joint torques (nv,) [N·m].
    """
    links = model.links
    n = len(links)
    turns = [_turns(link, q[i]) for i, link in enumerate(links)]

    # Outward: velocities (vel, ω), velocity-product accelerations (a_b, α_b), bias forces and rigid inertias.
    vel, omega, a_b, alpha_b, f, m, M, H, I = (_unset(n) for _ in range(9))
    for i, link in enumerate(links):
        vel[i], omega[i] = _to_child(link, turns[i], _of(vel, link.parent), _of(omega, link.parent))
        omega[i][Z] += v[i]
        a_b[i] = v[i] * np.stack([vel[i][1], -vel[i][0], 0.0])  # vel × z v
        alpha_b[i] = v[i] * np.stack([omega[i][1], -omega[i][0], 0.0])  # ω × z v
        M[i], H[i], I[i] = _rigid_inertia(link)
        h_lin, h_ang = M[i] @ vel[i] + H[i] @ omega[i], H[i].T @ vel[i] + I[i] @ omega[i]
        f[i] = np.cross(omega[i], h_lin)
        m[i] = np.cross(omega[i], h_ang) + np.cross(vel[i], h_lin)

    # Inward: articulated inertias and bias forces, seen through each joint, carried to the parent.
    W_lin, W_ang, push = _unset(n), _unset(n), _unset(n)  # U D⁻¹ and D⁻¹ u, which the last pass needs
    for i, link in reversed(list(enumerate(links))):
        U_lin, U_ang = H[i][:, Z], I[i][:, Z]
        D_inv = 1.0 / U_ang[Z]
        u = tau[i] - m[i][Z]
        W_lin[i], W_ang[i], push[i] = U_lin * D_inv, U_ang * D_inv, u * D_inv
        W_ang[i][Z] = 1.0
        p = link.parent
        if p < 0:
            continue
        M_a, H_a, I_a = _through_joint(M[i], H[i], I[i], U_lin, U_ang, W_lin[i], W_ang[i])
        f_a = f[i] + M_a @ a_b[i] + H_a @ alpha_b[i] + W_lin[i] * u
        m_a = m[i] + H_a.T @ a_b[i] + I_a @ alpha_b[i] + W_ang[i] * u
        f_p, m_p = _force_to_parent(link, turns[i], f_a, m_a)
        f[p], m[p] = f[p] + f_p, m[p] + m_p
        M_p, H_p, I_p = _inertia_to_parent(link, turns[i], M_a, H_a, I_a)
        M[p], H[p], I[p] = M[p] + M_p, H[p] + H_p, I[p] + I_p

    # Outward: accelerations. The world accelerates against gravity, which spares a gravity force per link.
    acc, alpha = _unset(n), _unset(n)
    result = np.zeros(n)
    for i, link in enumerate(links):
        at_parent = -np.array(model.gravity) if link.parent < 0 else acc[link.parent]
        acc[i], alpha[i] = _to_child(link, turns[i], at_parent, _of(alpha, link.parent))
        acc[i], alpha[i] = acc[i] + a_b[i], alpha[i] + alpha_b[i]
        result[i] = push[i] - W_lin[i] @ acc[i] - W_ang[i] @ alpha[i]
        alpha[i][Z] += result[i]
    return result


def _unset(n: int) -> list[Any]:
    return [None] * n


def _of(values: list[Any], parent: int) -> Any:
    """A link's vector, zero for the world."""
    return np.zeros(3) if parent < 0 else values[parent]


def _turns(link: Link, q: Any) -> tuple[Turn, Turn, Turn]:
    """The turns that carry a vector from the link's frame to its parent's, first one first."""
    alpha, beta, gamma = zxz(numpy.array(link.rotation))
    theta = q + gamma
    return (
        (2, np.cos(theta), np.sin(theta)),
        (0, math.cos(beta), math.sin(beta)),
        (2, math.cos(alpha), math.sin(alpha)),
    )


def _to_child(link: Link, turns: tuple[Turn, ...], lin: Any, ang: Any) -> tuple[Any, Any]:
    """A motion at the parent's origin, seen at the child's origin in the child's axes."""
    lin = lin + np.cross(ang, numpy.array(link.translation))
    for t in reversed(turns):
        lin, ang = turn_back(t, lin), turn_back(t, ang)
    return lin, ang


def _force_to_parent(link: Link, turns: tuple[Turn, ...], f: Any, m: Any) -> tuple[Any, Any]:
    """A force and moment at the child's origin, seen at the parent's origin in the parent's axes."""
    for t in turns:
        f, m = turn(t, f), turn(t, m)
    return f, m + np.cross(numpy.array(link.translation), f)


def _inertia_to_parent(link: Link, turns: tuple[Turn, ...], M: Any, H: Any, I: Any) -> tuple[Any, Any, Any]:
    """An articulated inertia carried likewise: H' = H - M p×, I' = I + p× H' + (p× H)ᵀ."""
    for t in turns:
        M, H, I = turn_matrix(t, M), turn_matrix(t, H), turn_matrix(t, I)
    P = _skew(link.translation)
    H_p = H - M @ P
    return M, H_p, _mirrored(I + P @ H_p + (P @ H).T)


def _through_joint(M: Any, H: Any, I: Any, U_lin: Any, U_ang: Any, W_lin: Any, W_ang: Any) -> tuple[Any, Any, Any]:
    """A - U D⁻¹ Uᵀ: the inertia felt through the free joint. Its row and column of the joint's axis are zero."""
    H_a, I_a = H - np.outer(W_lin, U_ang), I - np.outer(W_ang, U_ang)
    H_a[:, Z] = 0.0
    I_a[:, Z] = 0.0
    I_a[Z, :] = 0.0
    return _mirrored(M - np.outer(W_lin, U_lin)), H_a, _mirrored(I_a)


def _mirrored(A: Any) -> Any:
    """A symmetric matrix whose upper triangle is its lower one, so that each pair is computed once."""
    B = np.array(A)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        B[i, j] = A[j, i]
    return B


def _rigid_inertia(link: Link) -> tuple[Any, Any, Any]:
    """The blocks of a rigid body's inertia about the origin of its frame."""
    C = _skew(link.com)
    return (
        link.mass * np.eye(3),
        np.array(-link.mass * C),
        np.array(numpy.array(link.inertia) - link.mass * C @ C),
    )


def _skew(x: tuple[float, ...]) -> Any:
    """The matrix of the cross product x×, for a constant x."""
    return numpy.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])
