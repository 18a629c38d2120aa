"""Responses of a robot and its rows to forces, for impacts, position corrections and closed loops.

W is the inertia of a step (M plus the implicit terms of springs, dampers and servos), and J the Jacobian of the rows.
Sweeps over the tree take O(n) per response and suit long chains. Sparse factors of W take O(n d²) once, with the depth
d of the tree, and O(n d) per response; they suit joints that tendons or mimicry couple, and steps with many responses
(`stages.assemble.StepSystem`).
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
    """By sweeps over the tree, O(n) each: a `Response`.

    Attributes:
        body: The joints after elimination.
        rows: J.
        motions: Where both are taken.
    """

    body: ArticulatedTree
    rows: Rows
    motions: LinkMotions

    def solve(self, force: Any) -> Any:
        """W⁻¹ f (nv,)."""
        tree, carried, push = self.body.tree, {}, np.zeros(self.motions.model.nv)  # type: Any, dict[int, Any], Any
        for i in self.body.order:
            joint, parent, (f, n) = self.body.joints[i], tree.links[i].parent, carried.pop(i, ZERO)
            u, passed = self.body.inward(i, f, n, force[joint.at])
            push[joint.at] = joint.push(u)
            if parent >= 0:
                carried[parent] = total(carried.get(parent, ZERO), passed)
        return self.body.accelerations(push, self.body.order)[1]

    def respond(self, impulse: Any) -> Any:
        """W⁻¹ Jᵀ λ (nv,)."""
        push = np.zeros(self.motions.model.nv)
        for i, (_, own) in self.body.pushes(self.rows, impulse).items():
            push[self.body.joints[i].at] = own
        return self.body.accelerations(push, range(len(self.body.tree.links)))[1]

    def velocities(self, v: Any) -> Any:
        """J v (m,)."""
        return row_velocities(self.rows, self.motions, v)

    def delassus(self) -> Any:
        """J W⁻¹ Jᵀ (m, m)."""
        return mirror(pv_osim(self.body, pieces_of(self.body.tree, self.rows), self.rows.m))


class FactoredResponse(NamedTuple):
    """By sparse factors of W = U D Uᵀ that is formed: a `Response`.

    Attributes:
        above: Of each velocity those that it is coupled with.
        U: (nv, nv).
        D: (nv,).
        J: (m, nv).
        free_J: (m, nv) J without velocities of driven joints, which no impulse changes.
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
    """J v (m,) of velocities (nv,), in the configuration of some motions."""
    return row_values(rows, LinkMotions.of(motions.model, motions.q, v).velocity, v)
