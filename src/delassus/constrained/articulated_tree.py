"""The joints of a tree after elimination, and the sweeps over them that several algorithms share.

All of these compute with A⁻¹ by forces that travel through the joints of the articulated-body recursion. A is the mass
matrix M, or M + Jᵀ diag(ρ) J where rows put penalties on the links that they touch; rows on two links, or on several
joints, couple them (see `couplings`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.constrained.couplings import Couplings
from delassus.constrained.elimination_order import elimination_order
from delassus.constrained.ports import Bonds, Port
from delassus.constraints.mechanism import Mechanism
from delassus.constraints.motions import LinkMotions
from delassus.constraints.rows import Rows, rows_in
from delassus.dynamics.articulated import FreeJoint, free_joint
from delassus.dynamics.check import check_inertias
from delassus.dynamics.poses import Blocks, Pair, Pose, mirrored, rigid_blocks
from delassus.errors import DelassusError
from delassus.model.links import Links, links_of

ZERO: Pair = (np.zeros(3), np.zeros(3))


@dataclass(frozen=True)
class ArticulatedTree:
    """Links, their poses, and their joints' factors.

    `order` is the one in which links were eliminated; `bonds[i]` is what link i was coupled with then.
    """

    tree: Links
    poses: list[Pose]
    joints: list[FreeJoint]
    order: tuple[int, ...]
    bonds: list[Bonds]

    @property
    def coupled(self) -> bool:
        """Whether links feel each other past the tree."""
        return any(bonds.felt or bonds.ties for bonds in self.bonds)

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

    def pushes(self, rows: Rows, x: Any) -> dict[int, tuple[Any, Any]]:
        """u (n,) and D⁻¹ u (n,) of the joints that move rows, from forces x (m,) of these."""
        tied = sorted({tie.row for bonds in self.bonds for tie in bonds.ties})
        force, driven = row_forces(self.tree, rows.untied if tied else rows, x)
        pushes: dict[int, tuple[Any, Any]] = {}
        # What ports feel until their links have their turn, and ties, by row, as long as they have parts.
        pressed: dict[Port | int, Any] = {row: -x[[row]] for row in tied}

        def press(other: Port | int, y: Any) -> None:
            pressed[other] = pressed[other] + y if other in pressed else y

        def add(j: int, f: Any, n: Any) -> None:
            before = force.get(j, ZERO)
            force[j] = (before[0] + f, before[1] + n)

        for i in (i for i in self.order if i in rows.support):
            for port in [port for port in pressed if isinstance(port, Port) and port.link == i]:
                add(i, *port.exert(-pressed.pop(port)))
            u, passed = self.inward(i, *force.get(i, ZERO), driven.get(i))
            for tie in self.bonds[i].ties:
                u = u - tie.V.T @ pressed[tie.row]
            push = self.joints[i].push(u)
            pushes[i] = (u, push)
            for other, T in self.bonds[i].felt:
                press(other, T @ push)
            for tie in self.bonds[i].ties:
                if tie.port is not None:
                    press(tie.port, pressed.pop(tie.row))
            if self.tree.links[i].parent >= 0:
                add(self.tree.links[i].parent, *passed)
        return pushes

    def accelerations(
        self, push: Any, links: Collection[int], base: Pair = ZERO, product: Sequence[Pair] | None = None
    ) -> tuple[dict[int, Pair], Any, dict[int, Any]]:
        """Accelerations of some links (those that carry them included), of all their joints (nv,), and of ties by row.

        From D⁻¹ u (nv,), the acceleration of the world, and the links' own velocity products.
        """
        motion: dict[int, Pair] = {-1: base}
        a = np.zeros(len(push))
        tied: dict[int, Any] = {}

        def felt(other: Port | int) -> Any:
            return other.felt(motion[other.link]) if isinstance(other, Port) else tied[other]

        for i in (i for i in reversed(self.order) if i in links):
            link, joint, bonds = self.tree.links[i], self.joints[i], self.bonds[i]
            S_lin, S_ang = link.subspace
            lin, ang = self.poses[i].motion_to_child(*motion[link.parent])
            if product is not None:
                lin, ang = lin + product[i][0], ang + product[i][1]
            at = slice(link.v, link.v + link.motion.nv)
            own = push[at] - joint.W[:3].T @ lin - joint.W[3:].T @ ang
            if bonds.felt:
                pull = np.zeros(link.motion.nv)
                for other, T in bonds.felt:
                    pull = pull + T.T @ felt(other)
                answer = joint.push(pull)
                own = own - answer
            for tie in bonds.ties:
                y = tie.V @ (push[at] - answer if bonds.felt else push[at])
                if link.parent < 0:
                    y = y + tie.K[:, :3] @ lin + tie.K[:, 3:] @ ang
                elif product is not None:
                    y = y + tie.K[:, :3] @ product[i][0] + tie.K[:, 3:] @ product[i][1]
                if tie.port is not None or tie.row in tied:
                    y = y + felt(tie.row if tie.port is None else tie.port)
                tied[tie.row] = y
            motion[i] = (lin + S_lin @ own, ang + S_ang @ own)
            a[at] = own
        return motion, a, tied


@dataclass(frozen=True)
class Piece:
    """A part of a row: its unit force as it acts on a link (f, n), or on the link's joint, `driven` (n,)."""

    row: int
    link: int
    force: Pair
    driven: Any = None


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


def free_tree(mechanism: Mechanism, q: Any, rho: Any = None, time: Any = None) -> tuple[ArticulatedTree, Rows]:
    """The joints in a configuration (nq,), and the rows; with `rho` (m,), each row's penalty is on what it touches."""
    check_inertias(mechanism.model)
    if links_of(mechanism.model).mimics:
        raise DelassusError(
            f"joints of {mechanism.model.name!r} share coordinates (mimicry), so there is no recursion over its tree: "
            "take method='ltl'."
        )
    motions = LinkMotions.of(mechanism.model, q, np.zeros(mechanism.nv), time)
    rows = rows_in(mechanism, motions)
    return eliminated(motions.tree, motions.poses, rows, rho), rows


def eliminated(tree: Links, poses: list[Pose], rows: Rows, rho: Any = None) -> ArticulatedTree:
    """Inward: articulated inertias, felt through each joint and carried to the parent."""
    A = [rigid_blocks(link) for link in tree.links]
    bonds = [Bonds() for _ in tree.links]
    couplings = None if rho is None else Couplings(tree, rows, rho)
    if rho is not None:
        for i, own in rows.untied.links.items():
            A[i] = total(A[i], penalty(own.K, rho[list(own.rows)]))
    joints: list[Any] = [None] * len(tree.links)
    order = elimination_order(tree, frozenset() if rho is None else rows.layout.pairs)
    for i in order:
        link = tree.links[i]
        taken = None if couplings is None else couplings.take(i)
        if taken is not None:
            A[i] = total(A[i], taken[0])
        joint = free_joint(link, A[i], None if rho is None else joint_penalty(tree, rows.untied, i, rho))
        if couplings is not None and couplings.touch(i):
            rest = np.zeros(link.motion.nv)
            joint, _, bonds[i] = couplings.eliminate(i, joint, poses[i], rest, rest, ZERO)
        joints[i] = joint
        if link.parent >= 0:
            A[link.parent] = total(A[link.parent], poses[i].inertia_to_parent(*joint.felt_through(A[i])))
    return ArticulatedTree(tree, poses, joints, order, bonds)


def penalty(K: Any, rho: Any) -> Blocks:
    """Kᵀ diag(ρ) K in blocks."""
    weighted = K.T * rho
    return mirrored(weighted[:3] @ K[:, :3]), weighted[:3] @ K[:, 3:], mirrored(weighted[3:] @ K[:, 3:])


def joint_penalty(tree: Links, rows: Rows, link: int, rho: Any) -> Any:
    """What rows on a joint's velocities add to its D (n,), if there are any."""
    own = rows.of_joint(link)
    if not own:
        return None
    added = np.zeros(tree.links[link].motion.nv)
    for dof in own:
        added[dof.k] = added[dof.k] + dof.factor**2 * rho[dof.row]
    return added


def row_forces(tree: Links, rows: Rows, x: Any) -> tuple[dict[int, Pair], dict[int, Any]]:
    """Kᵀ x on the links, and what is at their joints (n,), of numbers x (m,) by row."""
    applied: dict[int, Pair] = {}
    for i, own in rows.links.items():
        here = x[list(own.rows)]
        applied[i] = (own.K[:, :3].T @ here, own.K[:, 3:].T @ here)
    driven: dict[int, Any] = {}
    for dof in rows.dofs:
        own = driven.setdefault(dof.link, np.zeros(tree.links[dof.link].motion.nv))
        own[dof.k] = own[dof.k] + dof.factor * x[dof.row]
    return applied, driven


def total(A: Blocks, B: Blocks) -> Blocks:
    """The sum of two inertias."""
    return A[0] + B[0], A[1] + B[1], A[2] + B[2]
