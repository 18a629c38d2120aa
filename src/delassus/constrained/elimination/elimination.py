"""Elimination of the links of a tree from M, or from M + Jᵀ diag(ρ) J, one link at a time.

Inward: the articulated-body recursion (see `sweep`) on links with penalties. A row K a = k on a link adds ρ KᵀK to its
inertia and -Kᵀ f to its bias force, f the force of the row; a row on a joint's velocity adds to D and to u. Rows on two
links, or on several joints, couple them: the effect of links that were eliminated before is added when a link is
eliminated (see `couplings`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.constrained.elimination.articulated_tree import ArticulatedTree
from delassus.constrained.elimination.couplings import Couplings
from delassus.constrained.elimination.elimination_order import elimination_order
from delassus.constrained.elimination.ports import Bonds
from delassus.constrained.elimination.row_forces import row_forces
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.constraints.mechanism.rows import Rows, rows_in
from delassus.dynamics.tree.articulated import free_joint, prescribed_joint
from delassus.dynamics.tree.check import check_inertias
from delassus.dynamics.tree.poses import Blocks
from delassus.dynamics.tree.sums import at, total
from delassus.dynamics.tree.sweep import ZERO, Inward, propagate_acceleration, world_acceleration
from delassus.errors import BadArgument
from delassus.linalg.products import mirror
from delassus.model.links import Links, links_of


class Loads(NamedTuple):
    """Loads on a tree under gravity: joint forces τ (nv,), and forces of rows (m,)."""

    tau: Any
    force: Any


def free_tree(mechanism: Mechanism, q: Any, rho: Any = None, time: Any = None) -> tuple[ArticulatedTree, Rows]:
    """The joints in a configuration (nq,), and the rows; with `rho` (m,), penalties are added to the links of the
    rows.
    """
    check_inertias(mechanism.model)
    if links_of(mechanism.model).mimics:
        raise BadArgument(
            f"joints of {mechanism.model.name!r} share coordinates (mimic joints), so there is no recursion over its "
            "tree: use method='ltl'.",
            code="not-supported",
        )
    motions = LinkMotions.of(mechanism.model, q, np.zeros(mechanism.nv), time)
    rows = rows_in(mechanism, motions)
    return eliminate_joints(motions, rows, rho)[0], rows


def eliminate_joints(
    motions: LinkMotions,
    rows: Rows,
    rho: Any = None,
    loads: Loads | None = None,
    added: Any = None,
    driven_links: Collection[int] = (),
) -> tuple[ArticulatedTree, Any]:
    """Eliminate the joints, with optional penalties ρ (m,); also returns D⁻¹ u (nv,) under loads.

    `added` (nv,) is added to the diagonals of the joints: springs and dampers of a time step, for example. Joints of
    `driven_links` do not respond to forces: their prescribed accelerations are part of the links' velocity products.

    One pass computes both: the data of a joint is used before the next one is visited, which keeps it in registers.
    Without loads, links at rest have zero forces, which the compiler folds away.
    """
    tree, poses, b = motions.tree, motions.poses, motions.product
    rest_velocity = np.zeros(motions.model.nv)
    tau, force, world = (rest_velocity, None, ZERO) if loads is None else (*loads, world_acceleration(tree))
    applied, driven = ({}, {}) if force is None else row_forces(tree, rows.untied, force)
    inward = Inward.of(tree, poses, motions.velocity, b)
    A, p = inward.A, inward.p
    if rho is not None:
        for i, link_rows in rows.untied.links.items():
            A[i] = total(A[i], penalty(link_rows.K, rho[list(link_rows.rows)]))
            if i in applied:
                p[i] = (p[i][0] - applied[i][0], p[i][1] - applied[i][1])
    couplings = None if rho is None else Couplings(tree, rows, rho, force)
    push = np.zeros(motions.model.nv)
    joints: list[Any] = [None] * len(tree.links)
    bonds = [Bonds() for _ in tree.links]
    order = elimination_order(tree, frozenset() if rho is None else rows.layout.pairs)
    for i in order:
        link = tree.links[i]
        coupling_loads = None if couplings is None else couplings.take(i)
        if coupling_loads is not None:
            inward.add(i, *coupling_loads)
        stiffness = None if rho is None else joint_penalty(tree, rows.untied, i, rho)
        if added is not None:
            stiffness = added[at(link)] if stiffness is None else stiffness + added[at(link)]
        joint = prescribed_joint(link, A[i]) if i in driven_links else free_joint(link, A[i], stiffness)
        u = joint.force(tau, p[i])
        u = u + driven[i] if i in driven else u
        push[joint.at] = joint.push(u)
        if couplings is not None and couplings.touch(i):
            a = propagate_acceleration(poses[i], world if link.parent < 0 else ZERO, b[i])
            joint, push[joint.at], bonds[i] = couplings.eliminate(i, joint, poses[i], u, push[joint.at], a)
        joints[i] = joint
        inward.hand_on(i, joint, u)
    return ArticulatedTree(tree, poses, joints, order, bonds), push


def penalty(K: Any, rho: Any) -> Blocks:
    """Kᵀ diag(ρ) K in blocks."""
    weighted = K.T * rho
    return mirror(weighted[:3] @ K[:, :3]), weighted[:3] @ K[:, 3:], mirror(weighted[3:] @ K[:, 3:])


def joint_penalty(tree: Links, rows: Rows, link: int, rho: Any) -> Any:
    """Contribution of rows on a joint's velocities to its D (n,); None if there are no such rows."""
    joint_rows = rows.of_joint(link)
    if not joint_rows:
        return None
    added = np.zeros(tree.links[link].motion.nv)
    for dof in joint_rows:
        added[dof.k] = added[dof.k] + dof.factor**2 * rho[dof.row]
    return added
