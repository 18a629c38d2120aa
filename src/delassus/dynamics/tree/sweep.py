"""The sweeps of the articulated-body recursion over a tree, one link at a time.

Inward, a link has the articulated inertia A and the bias force p of its subtree. Its joint (see `articulated`), with
the force u = τ - Sᵀ p, transmits to the parent π

    A_π += X (A - U D⁻¹ Uᵀ),      p_π += X (p + (A - U D⁻¹ Uᵀ) b + W u),

where b is the link's velocity-product acceleration. Outward, with the link's acceleration a = X a_π + b for q̈ = 0,

    q̈ = D⁻¹ u - Wᵀ a,      a_i = a + S q̈.

An algorithm writes the loops over the links and adds its terms between these steps: to A and p before the joint is
computed (penalties, springs, contacts), to D (see `free_joint`), to u, or to q̈.
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
    """The state of an inward sweep: A and p of each link, which accumulate those of its children, and b."""

    tree: Links
    poses: Sequence[Pose]
    A: list[Blocks]
    p: list[Pair]
    b: Sequence[Pair]

    @classmethod
    def of(cls, tree: Links, poses: Sequence[Pose], velocity: Sequence[Pair], b: Sequence[Pair]) -> Inward:
        """The state before the sweep: rigid inertias, and bias forces of the links alone."""
        p = [bias_force(link, *velocity[i]) for i, link in enumerate(tree.links)]
        return cls(tree, poses, [rigid_blocks(link) for link in tree.links], p, b)

    def add(self, i: int, A: Blocks, p: Pair) -> None:
        """Add an inertia and a bias force to those of link i."""
        self.A[i], self.p[i] = total(self.A[i], A), total(self.p[i], p)

    def hand_on(self, i: int, joint: FreeJoint, u: Any) -> None:
        """Add the inertia and force that link i's joint transmits to A and p of its parent; u (n,) is its force."""
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
    """The blocks of the rigid inertia of a link."""
    return link.inertia.mass * np.eye(3), -skew(link.inertia.first_moment), np.array(link.inertia.about_origin)


def propagate_acceleration(pose: Pose, parent: Pair, b: Pair | None = None) -> Pair:
    """X a_π + b: the acceleration of a link for q̈ = 0, from its parent's; None for b means zero."""
    a = pose.motion_to_child(*parent)
    return a if b is None else total(a, b)


def world_acceleration(tree: Links) -> Pair:
    """-g: an acceleration of the world replaces the weight of each link."""
    return -np.array(tree.gravity), np.zeros(3)
