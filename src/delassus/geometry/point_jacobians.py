"""Jacobians of points on links, also for links whose index is known at run time only.

Twists are about a point c of the robot, which preserves precision far from the world's origin. With the twists (lin,
ang) of joint directions about c, the Jacobian of a point c + r on a link has the columns lin + ang × r for all
directions on the path from the root to the link.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

import delassus.numpy as np
from delassus.dynamics.tree.poses import Pair
from delassus.model.links import Links


@dataclass(frozen=True, eq=False)
class PointJacobians:
    """Twists (6,) of all joint directions about c (3,), and whether they move each link (links, directions)."""

    tree: Links
    nv: int
    center: Any
    columns: list[Any]
    carries: NDArray[numpy.float64]

    @classmethod
    def of(cls, tree: Links, nv: int, world: list[Pair], world_moves: bool = False) -> PointJacobians:
        """Create Jacobians from rotations and origins of all links; with `world_moves`, the world is the last link."""
        center = world[0][1] if world else np.zeros(3)
        columns, owners = [], []
        for i, (link, (R, p)) in enumerate(zip(tree.links, world, strict=True)):
            S_lin, S_ang = link.subspace
            for k in range(link.motion.nv):
                lin, ang = R @ S_lin[:, k], R @ S_ang[:, k]
                columns.append(np.concatenate([lin + np.cross(p - center, ang), ang]))
                owners.append(i)
        carries = numpy.array([[float(i in tree.path(link)) for i in owners] for link in range(len(tree.links))])
        carries = numpy.concatenate([carries, numpy.zeros((1, len(owners)))]) if world_moves else carries
        return cls(tree, nv, center, columns, carries)

    def rows(self, link: Any, among: frozenset[int], point: Any, axes: Any, count: int = 3) -> Any:
        """J (count, nv) of a point (3,) along the columns of axes (3, 3), on a link given by a traced index.

        Rows beyond the third are rotations about the third, first and second axis.
        """
        arm = point - self.center
        directions = [np.concatenate([axes[:, k], np.cross(arm, axes[:, k])]) for k in range(3)]
        turns = [np.concatenate([np.zeros(3), axes[:, k]]) for k in (2, 0, 1)[: count - 3]]
        K = np.stack([*directions, *turns])
        table = self.carries[sorted(among)]
        varying = [e for e in range(len(self.columns)) if 0.0 < table[:, e].mean() < 1.0]
        factors = dict(zip(varying, np.take(self.carries[:, varying], link, axis=0), strict=True))
        J = np.zeros((count, self.nv))
        motions = ((link, link.v + k) for link in self.tree.links for k in range(link.motion.nv))
        for e, (owner, v) in enumerate(motions):
            if table[:, e].any():
                J[:, v] = J[:, v] + K @ self.columns[e] * (owner.ratio * factors.get(e, 1.0))
        return J

    def twist(self, link: int, v: Any) -> Any:
        """The twist (6,) of a link about c at velocities (nv,); zero for the world, whose index follows those of all
        links."""
        if link == len(self.tree.links):
            return np.zeros(6)
        directions = ((owner, owner.v + k) for owner in self.tree.links for k in range(owner.motion.nv))
        total = np.zeros(6)
        for e, (owner, k) in enumerate(directions):
            if self.carries[link, e]:
                total = total + self.columns[e] * (owner.ratio * v[k])
        return total

    def speed(self, twist: Any, point: Any, normal: Any) -> Any:
        """The velocity of a point (3,) along a normal (3,), for a link with this twist."""
        return twist[:3] @ normal + twist[3:] @ np.cross(point - self.center, normal)
