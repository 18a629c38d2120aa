"""The recursive Newton–Euler algorithm: inverse dynamics of a tree.

Computes tau = M(q) a + c(q, v) - Σ Jᵀ f_ext in O(n) operations: inverse dynamics. For a = 0 this is the bias
c(q, v) (Coriolis, centrifugal and gravity terms), for a = v = 0 the gravity terms alone. Reference:
J. Luh, M. Walker, R. Paul, On-line computational scheme for mechanical manipulators (1980): in link frames, with
classical accelerations a of link origins, which need no linear velocities. The acceleration of a point at r from the
origin is a + B r with B = α× + ω× ω×. B is used for the center of mass, for the moment and for all children.
"""

from typing import Any

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.dynamics.tree.poses import Pair, Pose, ShiftStep, poses_of
from delassus.dynamics.tree.recursion import FORCES, external_forces, joint_motions
from delassus.dynamics.tree.sums import add_torques, model_armature, total
from delassus.model.links import Link, Links, links_of
from delassus.model.model import Model


@kernel("(nq),(nv),(nv)->(nv)", inputs=FORCES)
def rnea(model: Model, q: Traced, v: Traced, a: Traced, *, forces: Traced = None) -> Floats:
    """Inverse dynamics: the generalized forces (nv,) [N·m, N] that cause the accelerations a. Cost: O(n).

    Args:
        model: The robot.
        q: Configuration (nq,) [rad, m].
        v: Velocity (nv,) [rad/s, m/s].
        a: Acceleration (nv,) [rad/s², m/s²].
        forces: External forces (njoints, 6) [N, N·m] on the bodies, each in its body's frame, linear first (input at
            run time).

    >>> robot = dl.load("double_pendulum")
    >>> q, v, a = np.array([0.1, 0.2]), np.zeros(2), np.zeros(2)
    >>> dl.rnea(robot, q, v, a).shape
    (2,)
    """
    return newton_euler(model, q, v, a, forces)


@kernel("(nq),(nv)->(nv)")
def bias_torques(model: Model, q: Traced, v: Traced) -> Floats:
    """The bias c(q, v) (nv,) [N·m, N]: Coriolis, centrifugal and gravity terms.

    >>> robot = dl.load("double_pendulum")
    >>> q, v = np.array([0.1, 0.2]), np.ones(2)
    >>> bool(np.allclose(dl.dynamics.bias_torques(robot, q, v), dl.rnea(robot, q, v, np.zeros(2))))
    True
    """
    return newton_euler(model, q, v, np.zeros(model.nv))


@kernel("(nq)->(nv)")
def gravity_torques(model: Model, q: Traced) -> Floats:
    """The generalized forces (nv,) [N·m, N] that hold the robot still against gravity.

    >>> robot = dl.load("double_pendulum")
    >>> dl.dynamics.gravity_torques(robot, np.zeros((5, 2))).shape
    (5, 2)
    """
    return newton_euler(model, q, np.zeros(model.nv), np.zeros(model.nv))


def newton_euler(model: Model, q: Any, v: Any, a: Any, forces: Any = None) -> Any:
    """The recursive Newton–Euler algorithm as a part of other kernels."""
    tree = links_of(model)
    links, poses = tree.links, poses_of(tree, q)
    f = _accelerating_forces(tree, poses, v, a)
    for i, (external_force, external_moment) in external_forces(tree, forces):
        f[i] = (f[i][0] - external_force, f[i][1] - external_moment)

    # Inward: forces through the joints.
    tau = np.array(a) * np.array(model_armature(model))
    for i, link in reversed(list(enumerate(links))):
        S_lin, S_ang = link.subspace
        add_torques(tau, link, S_lin.T @ f[i][0] + S_ang.T @ f[i][1])
        if link.parent >= 0:
            f[link.parent] = total(f[link.parent], poses[i].force_to_parent(*f[i]))
    return tau


def link_forces(tree: Links, q: Any, v: Any, a: Any) -> list[Pair]:
    """Force and moment that its parent exerts on each link, at the origin of the link and in its axes."""
    poses = poses_of(tree, q)
    f = _accelerating_forces(tree, poses, v, a)
    for i, link in reversed(list(enumerate(tree.links))):
        if link.parent >= 0:
            f[link.parent] = total(f[link.parent], poses[i].force_to_parent(*f[i]))
    return f


def _accelerating_forces(tree: Links, poses: list[Pose], v: Any, a: Any) -> list[Pair]:
    """Force and moment at the origin of each link that accelerate the link alone, and support its weight."""
    links = tree.links

    # Outward: angular velocities ω and accelerations α, accelerations of the origins; that of the world is -g.
    v_J, a_J = joint_motions(tree, v), joint_motions(tree, a)
    omega: list[Any] = []
    alpha: list[Any] = []
    origin: list[Any] = []
    B: list[Any] = []
    f: list[Pair] = []
    for i, link in enumerate(links):
        p = link.parent
        if p < 0:
            base_acceleration = (np.zeros(3), np.zeros(3), -np.array(tree.gravity))
            w, dw, acc = _propagate_motion(poses[i], *base_acceleration, np.zeros((3, 3)))
        else:
            w, dw, acc = _propagate_motion(poses[i], omega[p], alpha[p], origin[p], B[p])
        (lin_J, ang_J), (a_lin, a_ang) = v_J[i], a_J[i]
        origin.append(acc + a_lin + np.cross(2.0 * w + ang_J, lin_J))
        alpha.append(dw + a_ang + np.cross(w, ang_J))
        omega.append(w + ang_J)
        B.append(point_accelerations(omega[i], alpha[i]))
        f.append(_newton_euler_force(link, origin[i], B[i]))
    return f


def _propagate_motion(pose: Pose, omega: Any, alpha: Any, origin: Any, B: Any) -> tuple[Any, Any, Any]:
    """ω, α and the acceleration of the child's origin for a joint at rest, in the child's axes."""
    *inner, mount = pose.steps
    origin = origin + B @ mount.p if isinstance(mount, ShiftStep) else origin
    for step in reversed(inner):
        if isinstance(step, ShiftStep):
            origin = origin + np.cross(alpha, step.p) + np.cross(omega, np.cross(omega, step.p))
        else:
            origin, omega = step.motion_to_child(origin, omega)
            _, alpha = step.motion_to_child(np.zeros(3), alpha)
    return omega, alpha, origin


def point_accelerations(omega: Any, alpha: Any) -> Any:
    """B = α× + ω× ω× (3, 3)."""
    x, y, z = omega[0], omega[1], omega[2]
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    return np.array(
        [
            [-(yy + zz), xy - alpha[2], xz + alpha[1]],
            [xy + alpha[2], -(xx + zz), yz - alpha[0]],
            [xz - alpha[1], yz + alpha[0], -(xx + yy)],
        ]
    )


def _newton_euler_force(link: Link, origin: Any, B: Any) -> Pair:
    """The force and moment at the origin that accelerate a link.

    The integrals of a + B r and of r × (a + B r) over the mass: f = m a + B h with the first moment h = m c, and
    n = h × a + the axial part of B J with the second moments J = ½ tr(I) 1 - I, I about the origin.
    """
    h, I = np.array(link.inertia.first_moment), link.inertia.about_origin
    K = B @ (0.5 * np.trace(I) * np.eye(3) - I)
    n = np.stack([K[2, 1] - K[1, 2], K[0, 2] - K[2, 0], K[1, 0] - K[0, 1]])
    return link.inertia.mass * origin + B @ h, n + np.cross(h, origin)
