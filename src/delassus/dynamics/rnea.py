"""The recursive Newton–Euler algorithm: torques from accelerations.

Computes tau = M(q) a + c(q, v) - Σ Jᵀ f_ext in O(n) operations: inverse dynamics. With a = 0 it gives the bias
c(q, v) (Coriolis, centrifugal and gravity terms), with v = 0 as well the gravity terms alone. Reference:
R. Featherstone, Rigid Body Dynamics Algorithms (2008), chapter 5, in link frames.
"""

from typing import Any

import delassus.numpy as np
from delassus.compiler.kernel import kernel
from delassus.dynamics.poses import Pair, fixed_pose, poses_of
from delassus.dynamics.recursion import add_torques, joint_motions, link_velocities, newton_euler
from delassus.model.links import links_of
from delassus.model.model import Model


@kernel("(nq),(nv),(nv)->(nv)")
def rnea(model: Model, q: Any, v: Any, a: Any) -> Any:
    """Generalised forces (nv,) [N·m, N] that give the accelerations a.

    Args:
        model: The robot.
        q: Configuration (nq,) [rad, m].
        v: Velocity (nv,) [rad/s, m/s].
        a: Acceleration (nv,) [rad/s², m/s²].
    """
    return _newton_euler(model, q, v, a, None)


@kernel("(nq),(nv),(nv),(njoints,6)->(nv)")
def rnea_external(model: Model, q: Any, v: Any, a: Any, forces: Any) -> Any:
    """As `rnea`, with external forces (njoints, 6) [N, N·m] on the bodies, each in its body's frame, linear first."""
    return _newton_euler(model, q, v, a, forces)


@kernel("(nq),(nv)->(nv)")
def bias_torques(model: Model, q: Any, v: Any) -> Any:
    """The bias c(q, v) (nv,) [N·m, N]: Coriolis, centrifugal and gravity terms."""
    return _newton_euler(model, q, v, np.zeros(model.nv), None)


@kernel("(nq)->(nv)")
def gravity_torques(model: Model, q: Any) -> Any:
    """The generalised forces (nv,) [N·m, N] that hold the robot still against gravity."""
    return _newton_euler(model, q, np.zeros(model.nv), np.zeros(model.nv), None)


def _newton_euler(model: Model, q: Any, v: Any, a: Any, forces: Any) -> Any:
    tree = links_of(model)
    links, poses = tree.links, poses_of(tree, q)

    # Outward: velocities and accelerations; the world accelerates against gravity.
    velocity, product = link_velocities(tree, poses, joint_motions(tree, v))
    a_J = joint_motions(tree, a)
    acceleration: list[Pair] = []
    f: list[Pair] = []
    for i, link in enumerate(links):
        at_parent = (-np.array(tree.gravity), np.zeros(3)) if link.parent < 0 else acceleration[link.parent]
        lin, ang = poses[i].motion_to_child(*at_parent)
        acceleration.append((lin + product[i][0] + a_J[i][0], ang + product[i][1] + a_J[i][1]))
        f.append(newton_euler(link, velocity[i], acceleration[i]))
    if forces is not None:
        for j, (i, body) in enumerate(tree.bodies):
            push, twist = fixed_pose(body).force_to_parent(forces[j, :3], forces[j, 3:])
            f[i] = (f[i][0] - push, f[i][1] - twist)

    # Inward: forces through the joints.
    tau = np.array(a) * np.array(model_armature(model))
    for i in reversed(range(len(links))):
        add_torques(tree, tau, i, *f[i])
        p = links[i].parent
        if p >= 0:
            f_p, n_p = poses[i].force_to_parent(*f[i])
            f[p] = (f[p][0] + f_p, f[p][1] + n_p)
    return tau


def model_armature(model: Model) -> list[float]:
    """The rotor inertia seen by each velocity; those of mimicking joints count with the square of the ratio."""
    total = [0.0] * model.nv
    for link in links_of(model).links:
        for k, inertia in enumerate(link.armature):
            total[link.v + k] += link.ratio**2 * inertia
    return total
