"""The articulated-body tree after elimination (see `elimination`), and the sweeps that several algorithms share.

These sweeps apply A⁻¹ by propagating forces through the joints of the articulated-body recursion. A is the mass matrix
M, or M + Jᵀ diag(ρ) J with penalties of rows on the links that they act on. Rows on two links, or on several joints,
couple them (see `couplings`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.constrained.elimination.ports import Bonds, Port
from delassus.constrained.elimination.row_forces import row_forces
from delassus.constraints.mechanism.rows import Rows
from delassus.dynamics.tree.articulated import FreeJoint
from delassus.dynamics.tree.poses import Pair, Pose
from delassus.dynamics.tree.sums import total
from delassus.dynamics.tree.sweep import ZERO, propagate_acceleration
from delassus.model.links import Links
from delassus.model.parts import WORLD


@dataclass(frozen=True)
class ArticulatedTree:
    """Links, their poses, and their joints' factors.

    `order` is the order of elimination; `bonds[i]` has the couplings of link i at its elimination.
    """

    tree: Links
    poses: list[Pose]
    joints: list[FreeJoint]
    order: tuple[int, ...]
    bonds: list[Bonds]

    @property
    def coupled(self) -> bool:
        """Whether links are coupled other than through the tree."""
        return any(bonds.felt or bonds.ties for bonds in self.bonds)

    def inward(self, i: int, f: Any, n: Any, driven: Any = None) -> tuple[Any, Pair]:
        """Propagate a force on link i and its joint: u (n,) at the joint, and the force on the parent link."""
        u, f, n = self.joints[i].carry(f, n, driven)
        return u, self.poses[i].force_to_parent(f, n)

    def pushes(self, rows: Rows, x: Any) -> dict[int, tuple[Any, Any]]:
        """u (n,) and D⁻¹ u (n,) of the joints that move rows, from row forces x (m,)."""
        tie_rows = sorted({tie.row for bonds in self.bonds for tie in bonds.ties})
        force, driven = row_forces(self.tree, rows.untied if tie_rows else rows, x)
        pushes: dict[int, tuple[Any, Any]] = {}
        # Loads on ports until their links are visited, and on ties, by row, while these have parts left.
        loads: dict[Port | int, Any] = {row: -x[[row]] for row in tie_rows}

        def press(other: Port | int, y: Any) -> None:
            loads[other] = loads[other] + y if other in loads else y

        def add(j: int, f: Any, n: Any) -> None:
            force[j] = total(force.get(j, ZERO), (f, n))

        for i in (i for i in self.order if i in rows.support):
            for port in [port for port in loads if isinstance(port, Port) and port.link == i]:
                add(i, *port.exert(-loads.pop(port)))
            u, parent_force = self.inward(i, *force.get(i, ZERO), driven.get(i))
            for tie in self.bonds[i].ties:
                u = u - tie.V.T @ loads[tie.row]
            push = self.joints[i].push(u)
            pushes[i] = (u, push)
            for other, T in self.bonds[i].felt:
                press(other, T @ push)
            for tie in self.bonds[i].ties:
                if tie.port is not None:
                    press(tie.port, loads.pop(tie.row))
            if self.tree.links[i].parent >= 0:
                add(self.tree.links[i].parent, *parent_force)
        return pushes

    def accelerations(
        self, push: Any, links: Collection[int], base: Pair = ZERO, product: Sequence[Pair] | None = None
    ) -> tuple[dict[int, Pair], Any, dict[int, Any]]:
        """Accelerations of `links` (including their carriers), of all their joints (nv,), and of ties by row.

        The inputs are D⁻¹ u (nv,), the acceleration of the world, and the links' own velocity products.
        """
        motion: dict[int, Pair] = {WORLD: base}
        a = np.zeros(len(push))
        tie_values: dict[int, Any] = {}

        def reaction(other: Port | int) -> Any:
            return other.felt(motion[other.link]) if isinstance(other, Port) else tie_values[other]

        for i in (i for i in reversed(self.order) if i in links):
            link, joint, bonds = self.tree.links[i], self.joints[i], self.bonds[i]
            acceleration = propagate_acceleration(
                self.poses[i], motion[link.parent], None if product is None else product[i]
            )
            joint_acceleration = joint.answer(push[joint.at], acceleration)
            if bonds.felt:
                reaction_force = np.zeros(link.motion.nv)
                for other, T in bonds.felt:
                    reaction_force = reaction_force + T.T @ reaction(other)
                correction = joint.push(reaction_force)
                joint_acceleration = joint_acceleration - correction
            for tie in bonds.ties:
                y = tie.V @ (push[joint.at] - correction if bonds.felt else push[joint.at])
                if link.parent < 0:
                    y = y + tie.K[:, :3] @ acceleration[0] + tie.K[:, 3:] @ acceleration[1]
                elif product is not None:
                    y = y + tie.K[:, :3] @ product[i][0] + tie.K[:, 3:] @ product[i][1]
                if tie.port is not None or tie.row in tie_values:
                    y = y + reaction(tie.row if tie.port is None else tie.port)
                tie_values[tie.row] = y
            motion[i] = joint.accelerate(acceleration, joint_acceleration)
            a[joint.at] = joint_acceleration
        return motion, a, tie_values
