"""The sweeps of the articulated-body recursion over a tree, one link at a time.

Inward, a link has the articulated inertia A and the bias force p of all that it carries. Once its joint is known (see
`articulated`), with the force u = τ - Sᵀ p that is left at it, the parent π feels

    A_π += X (A - U D⁻¹ Uᵀ),      p_π += X (p + (A - U D⁻¹ Uᵀ) b + W u),

b the link's velocity-product acceleration. Outward, a = X a_π + b is what a link's acceleration would be without that
of its joint, and

    q̈ = D⁻¹ u - Wᵀ a,      a_i = a + S q̈.

An algorithm writes the loops over the links, in its own order, and between these steps what is its own: it adds to A
and p before the joint is made (penalties, springs, contacts), to D (see `free_joint`), to u, or to q̈.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import delassus.numpy as np
from delassus.dynamics.tree.articulated import FreeJoint
from delassus.dynamics.tree.poses import Blocks, Pair, Pose
from delassus.dynamics.tree.recursion import bias_force
from delassus.dynamics.tree.sums import total
from delassus.model.links import Link, Links
from delassus.spatial.rotations import skew

ZERO: Final[Pair] = (np.zeros(3), np.zeros(3))


@dataclass(frozen=True)
class Inward:
    """Links on the way inward: A and p of each, which grow as the links that it carries hand theirs on, and b."""

    tree: Links
    poses: Sequence[Pose]
    A: list[Blocks]
    p: list[Pair]
    b: Sequence[Pair]

    @classmethod
    def of(cls, tree: Links, poses: Sequence[Pose], velocity: Sequence[Pair], b: Sequence[Pair]) -> Inward:
        """Links that carry nothing yet: rigid inertias, and the forces that keep links at their velocities."""
        p = [bias_force(link, *velocity[i]) for i, link in enumerate(tree.links)]
        return cls(tree, poses, [rigid_blocks(link) for link in tree.links], p, b)

    def add(self, i: int, A: Blocks, p: Pair) -> None:
        """Add an inertia and a bias force to those of link i."""
        self.A[i], self.p[i] = total(self.A[i], A), total(self.p[i], p)

    def hand_on(self, i: int, joint: FreeJoint, u: Any) -> None:
        """Add to A and p of the parent, if link i has one, what it feels through the joint with the force u (n,)."""
        parent = self.tree.links[i].parent
        if parent < 0:
            return
        M, H, I = joint.propagate_inertia(self.A[i])
        (f, n), (lin, ang) = self.p[i], self.b[i]
        f = f + M @ lin + H @ ang + joint.W[:3] @ u
        n = n + H.T @ lin + I @ ang + joint.W[3:] @ u
        self.p[parent] = total(self.p[parent], self.poses[i].force_to_parent(f, n))
        self.A[parent] = total(self.A[parent], self.poses[i].inertia_to_parent(M, H, I))


def rigid_blocks(link: Link) -> Blocks:
    """The blocks of a link's own inertia."""
    return link.inertia.mass * np.eye(3), -skew(link.inertia.first_moment), np.array(link.inertia.about_origin)


def propagate_acceleration(pose: Pose, parent: Pair, b: Pair | None = None) -> Pair:
    """X a_π + b: a link's acceleration without that of its joint, from its parent's; b is left out if it is zero."""
    a = pose.motion_to_child(*parent)
    return a if b is None else total(a, b)


def world_acceleration(tree: Links) -> Pair:
    """The acceleration of the world that stands for gravity, which spares a gravity force per link."""
    return -np.array(tree.gravity), np.zeros(3)
