"""How places on links move: the rows of contacts as a Jacobian, where the link may be known at run time alone.

Velocities are taken about one point c of the robot, so that nothing is lost far from the world's origin: the motion of
a joint's direction e is (lin, ang) there, and a point at c + r on a link moves by the sum of lin + ang × r over those e
that carry the link.
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
    """The motions (6,) of all directions of joints about c (3,), and which carry a link, (links, directions)."""

    tree: Links
    nv: int
    center: Any
    columns: list[Any]
    carries: NDArray[numpy.float64]

    @classmethod
    def of(cls, tree: Links, nv: int, world: list[Pair], world_moves: bool = False) -> PointJacobians:
        """From rotations and origins of all links; `world_moves` counts the world as one more link."""
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
        """J (count, nv) of a point (3,) along axes (3, 3), which are columns; its link, a traced number, is one of
        some.

        Rows beyond three are turns about the third axis, the first and the second.
        """
        arm = point - self.center
        directions = [np.concatenate([axes[:, k], np.cross(arm, axes[:, k])]) for k in range(3)]
        turns = [np.concatenate([np.zeros(3), axes[:, k]]) for k in (2, 0, 1)[: count - 3]]
        K = np.stack([*directions, *turns])
        table = self.carries[sorted(among)]
        sometimes = [e for e in range(len(self.columns)) if 0.0 < table[:, e].mean() < 1.0]
        carried = dict(zip(sometimes, np.take(self.carries[:, sometimes], link, axis=0), strict=True))
        J = np.zeros((count, self.nv))
        motions = ((link, link.v + k) for link in self.tree.links for k in range(link.motion.nv))
        for e, (owner, v) in enumerate(motions):
            if table[:, e].any():
                J[:, v] = J[:, v] + K @ self.columns[e] * (owner.ratio * carried.get(e, 1.0))
        return J

    def twist(self, link: int, v: Any) -> Any:
        """The motion (6,) of a link about c at velocities (nv,); none of the world, which comes after all links."""
        if link == len(self.tree.links):
            return np.zeros(6)
        directions = ((owner, owner.v + k) for owner in self.tree.links for k in range(owner.motion.nv))
        total = np.zeros(6)
        for e, (owner, place) in enumerate(directions):
            if self.carries[link, e]:
                total = total + self.columns[e] * (owner.ratio * v[place])
        return total

    def speed(self, twist: Any, point: Any, normal: Any) -> Any:
        """The velocity of a point (3,) along a normal (3,), of a link with that motion."""
        return twist[:3] @ normal + twist[3:] @ np.cross(point - self.center, normal)
