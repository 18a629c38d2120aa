"""Poses and velocities of the links of a model, as inputs of constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.dynamics.tree.poses import Pair, Pose, poses_of, velocities
from delassus.dynamics.tree.recursion import joint_motions, link_velocities
from delassus.model.links import Links, links_of
from delassus.model.model import Model
from delassus.model.parts import WORLD


@dataclass(frozen=True)
class LinkMotions:
    """Poses, velocities and velocity-product accelerations v × v_J of all links, each in its own axes.

    `time` [s] is None if it was not given; moving constraints read it by `Constraint.time_in`.
    """

    model: Model
    tree: Links
    q: Any
    v: Any
    poses: list[Pose]
    velocity: list[Pair]
    product: list[Pair]
    time: Any = None

    @classmethod
    def of(cls, model: Model, q: Any, v: Any, time: Any = None) -> LinkMotions:
        """Compute from configuration (nq,), velocity (nv,) and the time [s] of moving references."""
        tree = links_of(model)
        poses = poses_of(tree, q)
        velocity, product = link_velocities(tree, poses, joint_motions(tree, v))
        return cls(model, tree, q, v, poses, velocity, product, time)

    def in_world(self, link: int) -> Pair:
        """Rotation and origin of a link in the world."""
        return self._below(self.tree.path(link))

    def between(self, first: int, second: int) -> Pair:
        """Rotation and origin of the second link (or the world) in the first, along the path through their common
        carrier.
        """
        path, other = self.tree.path(first), self.tree.path(second)
        shared = sum(1 for i, j in zip(path, other, strict=False) if i == j)
        R_1, p_1 = self._below(path[shared:])
        R_2, p_2 = self._below(other[shared:])
        return R_1.T @ R_2, R_1.T @ (p_2 - p_1)

    def _below(self, path: list[int]) -> Pair:
        """Rotation and origin of the last link of a path, relative to the carrier of the first."""
        R, p = np.array(np.eye(3)), np.zeros(3)
        for i in path:
            R, p = self.poses[i].compose(R, p)
        return R, p

    def velocity_of(self, link: int) -> Pair:
        """The velocity of a link, or of the world."""
        return (np.zeros(3), np.zeros(3)) if link == WORLD else self.velocity[link]

    def gravity(self, link: int) -> Any:
        """The acceleration of gravity (3,) [m/s²] in a link's axes."""
        g, zero = np.array(self.tree.gravity), np.zeros(3)
        for i in self.tree.path(link):
            g, _ = self.poses[i].motion_to_child(g, zero)
        return g

    def acceleration(self, link: int, a: Any) -> Pair:
        """The spatial acceleration of a link for accelerations a (nv,) of the joints, without gravity."""
        lin, ang = np.zeros(3), np.zeros(3)
        for i in self.tree.path(link):
            carrier = self.tree.links[i]
            S_lin, S_ang = carrier.subspace
            joint_part = velocities(carrier, a)
            lin, ang = self.poses[i].motion_to_child(lin, ang)
            lin, ang = lin + self.product[i][0] + S_lin @ joint_part, ang + self.product[i][1] + S_ang @ joint_part
        return lin, ang
