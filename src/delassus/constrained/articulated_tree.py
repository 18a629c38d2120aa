"""What the operational-space algorithms share: the joints of a tree in a configuration, and the pieces of its rows.

All of them compute J A⁻¹ Jᵀ by unit forces that travel through the joints of the articulated-body recursion. A is the
mass matrix M, or M + Jᵀ diag(ρ) J where rows put penalties on the links that they touch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.constraints.mechanism import Mechanism
from delassus.constraints.motions import LinkMotions
from delassus.constraints.rows import Rows, rows_of
from delassus.dynamics.articulated import FreeJoint, free_joint
from delassus.dynamics.check import check_inertias
from delassus.dynamics.poses import Blocks, Pair, Pose, rigid_blocks
from delassus.errors import DelassusError
from delassus.model.links import Links, links_of

ZERO: Pair = (np.zeros(3), np.zeros(3))


@dataclass(frozen=True)
class ArticulatedTree:
    """Links, their poses, and their joints' factors."""

    tree: Links
    poses: list[Pose]
    joints: list[FreeJoint]

    def inward(self, i: int, f: Any, n: Any, driven: Any = None) -> tuple[Any, Pair]:
        """A force on link i and on its joint, through it: u (n,) at the joint, and what the parent link feels."""
        u, f, n = self.joints[i].carry(f, n, driven)
        return u, self.poses[i].force_to_parent(f, n)

    def outward(self, i: int, parent: Pair, u: Any = None) -> tuple[Any, Pair]:
        """Accelerations of the joint (n,) and of link i, from its parent's and from the force u (n,) at the joint."""
        S_lin, S_ang = self.tree.links[i].subspace
        joint = self.joints[i]
        lin, ang = self.poses[i].motion_to_child(*parent)
        own = -(joint.W[:3].T @ lin + joint.W[3:].T @ ang)
        own = own if u is None else joint.push(u) + own
        return own, (lin + S_lin @ own, ang + S_ang @ own)


@dataclass(frozen=True)
class Piece:
    """A part of a row: its unit force as it acts on a link (f, n), or on the link's joint, `driven` (n,)."""

    row: int
    link: int
    force: Pair
    driven: Any = None


def rows_at(mechanism: Mechanism, motions: LinkMotions) -> Rows:
    """The rows of a mechanism in a state."""
    return rows_of(mechanism)


def pieces_of(tree: Links, rows: Rows) -> list[Piece]:
    """Every link, and every velocity, that a row touches."""
    pieces = [
        Piece(row, link, (own.K[j, :3], own.K[j, 3:]))
        for link, own in rows.links.items()
        for j, row in enumerate(own.rows)
    ]
    for dof in rows.dofs:
        driven = np.zeros(tree.links[dof.link].motion.nv)
        driven[dof.k] = dof.factor
        pieces.append(Piece(dof.row, dof.link, ZERO, driven))
    return pieces


def free_tree(mechanism: Mechanism, q: Any, rho: Any = None) -> tuple[ArticulatedTree, Rows]:
    """The joints in a configuration (nq,), and the rows; with `rho` (m,), each row's penalty is on what it touches."""
    check_inertias(mechanism.model)
    if links_of(mechanism.model).mimics:
        raise DelassusError(
            f"joints of {mechanism.model.name!r} share coordinates (mimicry), so there is no recursion over its tree: "
            "take method='ltl'."
        )
    motions = LinkMotions.of(mechanism.model, q, np.zeros(mechanism.nv))
    rows = rows_at(mechanism, motions)
    return eliminated(motions.tree, motions.poses, rows, rho), rows


def eliminated(tree: Links, poses: list[Pose], rows: Rows, rho: Any = None) -> ArticulatedTree:
    """Inward: articulated inertias, felt through each joint and carried to the parent."""
    A = [rigid_blocks(link) for link in tree.links]
    added: dict[int, Any] = {}
    if rho is not None:
        check_single(tree, rows)
        for i, own in rows.links.items():
            A[i] = _sum(A[i], _penalty(own.K, rho[list(own.rows)]))
        for dof in rows.dofs:
            added.setdefault(dof.link, np.zeros(tree.links[dof.link].motion.nv))
            added[dof.link][dof.k] = added[dof.link][dof.k] + dof.factor**2 * rho[dof.row]
    joints: list[Any] = [None] * len(tree.links)
    for i, link in reversed(list(enumerate(tree.links))):
        joint = joints[i] = free_joint(link, A[i], added.get(i))
        if link.parent >= 0:
            felt = poses[i].inertia_to_parent(*joint.felt_through(A[i]))
            A[link.parent] = _sum(A[link.parent], felt)
    return ArticulatedTree(tree, poses, joints)


def check_single(tree: Links, rows: Rows) -> None:
    """Raise unless every row touches one link, or one velocity: a penalty on two couples them past the tree."""
    seen: set[int] = set()
    for piece in pieces_of(tree, rows):
        if piece.row in seen:
            raise DelassusError(
                f"row {piece.row} touches several links or velocities, and penalties on it would couple them past the "
                "tree: take a method without penalties, such as method='pv_osimr', or prox_pv for the dynamics."
            )
        seen.add(piece.row)


def _penalty(K: Any, rho: Any) -> Blocks:
    """Kᵀ diag(ρ) K in blocks."""
    weighted = K.T * rho
    return weighted[:3] @ K[:, :3], weighted[:3] @ K[:, 3:], weighted[3:] @ K[:, 3:]


def _sum(A: Blocks, B: Blocks) -> Blocks:
    return A[0] + B[0], A[1] + B[1], A[2] + B[2]
