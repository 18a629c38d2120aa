"""Responses of a robot and its rows to forces, for impacts, position corrections and closed loops.

W is the inertia of a step (M plus the implicit terms of springs, dampers and servos), and J the Jacobian of the rows.
Sweeps over the tree take O(n) per response and suit long chains. Sparse factors of W take O(n d²) once, for a tree of
depth d, and O(n d) per response. They suit joints that are coupled by tendons or as mimic joints, and steps with many
responses (`stages.assemble.StepSystem`).
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import delassus.numpy as np
from delassus.constrained.delassus.pv_osim import pv_osim
from delassus.constrained.elimination.articulated_tree import ArticulatedTree
from delassus.constrained.elimination.row_forces import pieces_of
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.rows import Rows, row_values
from delassus.dynamics.mass.factor import substitute
from delassus.dynamics.tree.sums import total
from delassus.dynamics.tree.sweep import ZERO
from delassus.linalg.products import mirror


class Response(Protocol):
    """W⁻¹ and J of a state."""

    def solve(self, force: Any) -> Any:
        """W⁻¹ f (nv,) of generalized forces (nv,)."""

    def respond(self, impulse: Any) -> Any:
        """W⁻¹ Jᵀ λ (nv,) of impulses (m,) of the rows."""

    def velocities(self, v: Any) -> Any:
        """J v (m,) of velocities (nv,)."""

    def delassus(self) -> Any:
        """J W⁻¹ Jᵀ (m, m)."""


class ArticulatedResponse(NamedTuple):
    """A `Response` by sweeps over the tree, O(n) each.

    Attributes:
        body: The joints after elimination.
        rows: J.
        motions: The configuration of both.
    """

    body: ArticulatedTree
    rows: Rows
    motions: LinkMotions

    def solve(self, force: Any) -> Any:
        """W⁻¹ f (nv,)."""
        driven_acceleration = np.zeros(self.motions.model.nv)
        tree, link_forces = self.body.tree, {}  # type: Any, dict[int, Any]
        for i in self.body.order:
            joint, parent, (f, n) = self.body.joints[i], tree.links[i].parent, link_forces.pop(i, ZERO)
            u, parent_force = self.body.inward(i, f, n, force[joint.at])
            driven_acceleration[joint.at] = joint.push(u)
            if parent >= 0:
                link_forces[parent] = total(link_forces.get(parent, ZERO), parent_force)
        return self.body.accelerations(driven_acceleration, self.body.order)[1]

    def respond(self, impulse: Any) -> Any:
        """W⁻¹ Jᵀ λ (nv,)."""
        driven_acceleration = np.zeros(self.motions.model.nv)
        for i, (_, joint_acceleration) in self.body.pushes(self.rows, impulse).items():
            driven_acceleration[self.body.joints[i].at] = joint_acceleration
        return self.body.accelerations(driven_acceleration, range(len(self.body.tree.links)))[1]

    def velocities(self, v: Any) -> Any:
        """J v (m,)."""
        return row_velocities(self.rows, self.motions, v)

    def delassus(self) -> Any:
        """J W⁻¹ Jᵀ (m, m)."""
        return mirror(pv_osim(self.body, pieces_of(self.body.tree, self.rows), self.rows.m))


class FactoredResponse(NamedTuple):
    """A `Response` by sparse factors W = U D Uᵀ.

    Attributes:
        above: For each velocity, the earlier ones that W couples it with (`mass.factor.ancestors`).
        U: (nv, nv).
        D: (nv,).
        J: (m, nv).
        free_J: (m, nv) J with zero columns for driven joints, whose velocities impulses do not change.
    """

    above: Any
    U: Any
    D: Any
    J: Any
    free_J: Any

    def solve(self, force: Any) -> Any:
        """W⁻¹ f (nv,)."""
        return substitute(self.above, self.U, self.D, force)

    def respond(self, impulse: Any) -> Any:
        """W⁻¹ Jᵀ λ (nv,)."""
        return self.solve(self.free_J.T @ impulse)

    def velocities(self, v: Any) -> Any:
        """J v (m,)."""
        return self.J @ v

    def delassus(self) -> Any:
        """J W⁻¹ Jᵀ (m, m)."""
        return self.free_J @ np.stack([self.solve(row) for row in self.free_J], axis=1)


def row_velocities(rows: Rows, motions: LinkMotions, v: Any) -> Any:
    """J v (m,) of velocities (nv,), in the configuration of `motions`."""
    return row_values(rows, LinkMotions.of(motions.model, motions.q, v).velocity, v)
