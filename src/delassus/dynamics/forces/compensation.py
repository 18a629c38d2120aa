"""Gravity compensation: passive forces that balance a fraction of the weight of each body, MJCF's `gravcomp`.

The force -m g acts on a body with the compensated mass m, at its center c: f = -Σ m J_cᵀ g. Cost: O(n d) for depth d.
"""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.dynamics.kinematics.kinematics import world_poses
from delassus.dynamics.tree.sums import add_torques
from delassus.model.links import links_of
from delassus.model.model import Model
from delassus.model.placement import Placement


def is_compensated(model: Model) -> bool:
    """Whether a body of a model has gravity compensation."""
    return any(joint.gravity_compensation for joint in model.joints)


def compensation_forces(model: Model, q: Any) -> Any:
    """f (nv,) [N·m, N]."""
    tree = links_of(model)
    world, total, gravity = world_poses(tree, q), np.zeros(model.nv), np.array(tree.gravity)
    for mass, link, point in _compensation_points(model, tree, world):
        force = -mass * gravity
        for i in tree.path(link):
            S_lin, S_ang = tree.links[i].subspace
            R, p = world[i]
            joint_force = S_lin.T @ (R.T @ force) + S_ang.T @ (R.T @ np.cross(point - p, force))
            add_torques(total, tree.links[i], joint_force)
    return total


def compensation_energy(model: Model, q: Any) -> Any:
    """Σ m g·c [J]: its sign is opposite to that of the potential energy of the compensated masses."""
    tree = links_of(model)
    points = _compensation_points(model, tree, world_poses(tree, q))
    return sum((mass * (np.array(tree.gravity) @ point) for mass, _, point in points), np.array(0.0))


def _compensation_points(model: Model, tree: Any, world: Any) -> list[tuple[float, int, Any]]:
    """Compensated masses [kg], their links, and their positions in the world [m]."""
    result = []
    for k, joint in enumerate(model.joints):
        if joint.gravity_compensation:
            mass, *at = joint.gravity_compensation
            link, placement = tree.place(k, Placement.of(p=at))
            R, p = world[link]
            result.append((mass, link, p + R @ placement.p))
    return result
