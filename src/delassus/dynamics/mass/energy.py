"""Kinetic and potential energy."""

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.dynamics.kinematics.kinematics import world_poses
from delassus.dynamics.tree.poses import poses_of
from delassus.dynamics.tree.recursion import joint_motions, link_velocities, momentum
from delassus.dynamics.tree.sums import model_armature
from delassus.model.links import links_of
from delassus.model.model import Model


@kernel("(nq),(nv)->()")
def kinetic_energy(model: Model, q: Traced, v: Traced) -> Floats:
    """½ vᵀ M(q) v [J], rotor inertias included; O(n), without forming M.

    >>> robot, q, v = dl.load("double_pendulum"), np.array([0.1, 0.2]), np.ones(2)
    >>> bool(np.isclose(dl.kinetic_energy(robot, q, v), 0.5 * v @ dl.crba(robot, q) @ v))
    True
    """
    tree = links_of(model)
    velocity, _ = link_velocities(tree, poses_of(tree, q), joint_motions(tree, v))
    twice = np.array(model_armature(model)) @ (v * v)
    for link, (lin, ang) in zip(tree.links, velocity, strict=True):
        h_lin, h_ang = momentum(link, lin, ang)
        twice = twice + lin @ h_lin + ang @ h_ang
    return 0.5 * twice


@kernel("(nq)->()")
def potential_energy(model: Model, q: Traced) -> Floats:
    """-Σ m g·c [J]: zero where all centers of mass are at the height of the world's origin.

    >>> bool(dl.potential_energy(dl.load("pendulum"), [np.pi]) > dl.potential_energy(dl.load("pendulum"), [0.0]))
    True
    """
    tree = links_of(model)
    total = np.array(0.0)
    for link, (R, p) in zip(tree.links, world_poses(tree, q), strict=True):
        moment = link.inertia.mass * p + R @ np.array(link.inertia.first_moment)
        total = total - np.array(tree.gravity) @ moment
    return total
