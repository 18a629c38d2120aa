"""The center of mass, its Jacobian, and the momentum about it."""

from typing import Any

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.dynamics.kinematics.kinematics import world_poses
from delassus.dynamics.tree.check import LEAST
from delassus.dynamics.tree.poses import Pair, poses_of
from delassus.dynamics.tree.recursion import joint_motions, link_velocities, momentum
from delassus.dynamics.tree.sums import total
from delassus.errors import DelassusError
from delassus.model.links import Link, Links, links_of
from delassus.model.model import Model, sample_of


@kernel("(nq)->(3)")
def center_of_mass(model: Model, q: Traced) -> Floats:
    """The center of mass (3,) [m] of all moving bodies, in the world.

    >>> dl.center_of_mass(dl.load("double_pendulum"), np.zeros((5, 2))).shape
    (5, 3)
    """
    tree = links_of(model)
    return _first_moment(tree, world_poses(tree, q)) / total_mass(model, tree)


@kernel("(nq)->(3,nv)")
def center_of_mass_jacobian(model: Model, q: Traced) -> Floats:
    """The matrix (3, nv) that maps v to the velocity of the center of mass; O(n), from the masses of subtrees.

    >>> dl.dynamics.center_of_mass_jacobian(dl.load("double_pendulum"), np.zeros(2)).shape
    (3, 2)
    """
    tree = links_of(model)
    world = world_poses(tree, q)
    model_mass = total_mass(model, tree)
    mass = [link.inertia.mass for link in tree.links]
    moment = [_moment(link, *pose) for link, pose in zip(tree.links, world, strict=True)]
    J = np.zeros((3, model.nv))
    for i in reversed(range(len(tree.links))):
        link = tree.links[i]
        R, p = world[i]
        S_lin, S_ang = link.subspace
        for k in range(link.motion.nv):
            ang = R @ S_ang[:, k]
            column = mass[i] * (R @ S_lin[:, k]) + np.cross(ang, moment[i] - mass[i] * p)
            column = column * (link.ratio / model_mass)
            J[:, link.v + k] = J[:, link.v + k] + column
        if link.parent >= 0:
            mass[link.parent] = mass[link.parent] + mass[i]
            moment[link.parent] = moment[link.parent] + moment[i]
    return J


@kernel("(nq),(nv)->(6)")
def centroidal_momentum(model: Model, q: Traced, v: Traced) -> Floats:
    """Linear and angular momentum (6,) [kg·m/s, kg·m²/s] about the center of mass, in the world's axes.

    >>> dl.dynamics.centroidal_momentum(dl.load("double_pendulum"), np.zeros(2), np.ones(2)).shape
    (6,)
    """
    tree = links_of(model)
    poses, world = poses_of(tree, q), world_poses(tree, q)
    velocity, _ = link_velocities(tree, poses, joint_motions(tree, v))
    h: list[Pair] = [momentum(link, *velocity[i]) for i, link in enumerate(tree.links)]
    world_momentum: Pair = (np.zeros(3), np.zeros(3))
    for i, link in reversed(list(enumerate(tree.links))):
        parent_momentum = poses[i].force_to_parent(*h[i])
        if link.parent < 0:
            world_momentum = total(world_momentum, parent_momentum)
        else:
            h[link.parent] = total(h[link.parent], parent_momentum)
    center = _first_moment(tree, world) / total_mass(model, tree)
    linear, angular = world_momentum
    return np.concatenate([linear, angular - np.cross(center, linear)])


def _first_moment(tree: Links, world: list[Pair]) -> Any:
    moment = np.zeros(3)
    for link, pose in zip(tree.links, world, strict=True):
        moment = moment + _moment(link, *pose)
    return moment


def _moment(link: Link, R: Any, p: Any) -> Any:
    """The first moment m c of a link, in the world."""
    return link.inertia.mass * p + R @ np.array(link.inertia.first_moment)


def total_mass(model: Model, tree: Links) -> Any:
    """The mass [kg] of all moving bodies; raises an error if it is zero."""
    if all(link.inertia.mass < LEAST for link in links_of(sample_of(model)).links):
        raise DelassusError(
            f"the model {model.name!r} has no center of mass, as no moving body has a mass; set the mass of a body.",
            code="no-mass",
        )
    return sum(link.inertia.mass for link in tree.links)
