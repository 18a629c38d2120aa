"""How the rows of a mechanism change near a state: derivatives of J a + γ and of Jᵀ λ, for fixed a and λ.

A row is a function r(x, v, a) of the displacements, velocities and accelerations of the links that it touches, in their
own axes. If joint j with a column s of its motion subspace moves by δ, these change, beyond what moves along, by

    x: s,    v: V = v_π × s,    a: A_q = a_π × s + V × (v_l - v_π),    and a by A_v = s × (v_l - v_j - v_π) with v_j

(see `frame_derivatives`), whatever the row. What is special to a row, ∂r/∂x and ∂r/∂v, is left to the compiler; it is
a short function. Of the forces, Jᵀ λ = Σ J_lᵀ w_l with wrenches w_l = K_lᵀ λ on the links: `torque_derivatives` moves
wrenches along with their links, so only the change of w_l in the links' axes is added, J_lᵀ (∂w_l/∂x) J_k, which is
zero for points and welds against the world. Rows on joints are functions of q and v themselves.
O(m d) operations for depth d.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import delassus.numpy as np
from delassus.compiler.derivatives import jacobian
from delassus.constraints.constraint import Constraint
from delassus.constraints.displaced import Displaced
from delassus.constraints.mechanism import Mechanism
from delassus.constraints.motions import LinkMotions
from delassus.constraints.rows import Rows, right_hand_side, row_values, rows_in
from delassus.dynamics.base_frame import Moving, moving_links
from delassus.dynamics.manifold import coordinate_rates
from delassus.spatial.motions import adjoint, motion_cross, motion_to_child


@dataclass(frozen=True)
class RowDerivatives:
    """Derivatives of r = J a + γ (m, nv) by q, along tangent vectors, and by v; and those of Jᵀ λ in two parts:

    the wrenches (6,) that it is made of, by link and in the link's axes, and the change (nv, nv) with q of Jᵀ λ beyond
    that of wrenches fixed in their links.
    """

    by_q: Any
    by_v: Any
    wrenches: dict[int, Any]
    forces_by_q: Any


@dataclass(frozen=True)
class _Place:
    """A state, with accelerations a (nv,), and all links there; at rest, rows are J a instead of J a + γ."""

    motions: LinkMotions
    moving: list[Moving]
    a: Any
    rest: bool

    def rows(self, alone: Mechanism, motions: LinkMotions) -> tuple[Rows, Any]:
        """The rows of a mechanism at motions near these, and their accelerations r (m,)."""
        rows = rows_in(alone, motions)
        accelerations = {}
        for link in rows.links:
            a = motion_to_child(self.moving[link].R, self.moving[link].p, self.moving[link].a)
            accelerations[link] = (a[:3], a[3:])
        r = row_values(rows, accelerations, self.a)
        return rows, r if self.rest else r - right_hand_side(alone, rows, motions)


def row_derivatives(
    mechanism: Mechanism, motions: LinkMotions, a: Any, force: Any, *, rest: bool = False
) -> RowDerivatives:
    """The derivatives in a state, at accelerations a (nv,) and forces λ (m,).

    At rest, for motions without velocity, they are those of J a and Jᵀ λ alone, which are linear in a and λ.
    """
    nv = mechanism.nv
    place = _Place(motions, moving_links(motions.tree, motions.q, motions.v, a, falling=False), a, rest)
    total = RowDerivatives(np.zeros((mechanism.m, nv)), np.zeros((mechanism.m, nv)), {}, np.zeros((nv, nv)))
    for constraint, at in zip(mechanism.constraints, mechanism.row_ranges(), strict=True):
        if constraint.links(mechanism.model):
            _add_bodies(total, constraint, at, place, force[at])
        if constraint.velocities(mechanism.model):
            _add_joints(total, constraint, at, place, force[at])
    return total


def _add_bodies(total: RowDerivatives, constraint: Constraint, at: slice, place: _Place, force: Any) -> None:
    """Add a constraint on links."""
    motions, tree = place.motions, place.motions.tree
    alone = Mechanism(motions.model, (constraint,), model_constraints=False)
    touched = constraint.links(motions.model)
    rows, _ = place.rows(alone, motions)
    for link in touched:
        wrench = rows.links[link].K.T @ force
        total.wrenches[link] = total.wrenches[link] + wrench if link in total.wrenches else wrench

    def near(shifts: Any, velocities: Any) -> tuple[Any, Any]:
        by_link = dict(zip(touched, shifts, strict=True)), dict(zip(touched, velocities, strict=True))
        rows, r = place.rows(alone, Displaced.near(motions, *by_link))
        return r, np.stack([rows.links[link].K.T @ force for link in touched])

    here = np.stack([np.concatenate(motions.velocity[link]) for link in touched])
    (r_x, r_v), (w_x, _) = jacobian(near, (0, 1))(np.zeros((len(touched), 6)), here)
    paths = [tree.path(link) for link in touched]
    shared = set.intersection(*map(set, paths)) if len(paths) > 1 else set()
    inward = [_to_link(place.moving[link]) for link in touched]
    columns = [_Columns.of(place, link, set()) for link in touched]
    own = [_Columns.of(place, link, shared) for link in touched]
    for k, link in enumerate(touched):
        K, F_v, F_x = (A @ inward[k] for A in (rows.links[link].K, r_v[:, k], r_x[:, k]))
        c = own[k] if constraint.inner(motions.model) else columns[k]  # no common joint moves inner rows
        _add(total.by_q, range(at.start, at.stop), c.velocities, K @ c.A_q + F_v @ c.V + F_x @ c.S)
        _add(total.by_v, range(at.start, at.stop), c.velocities, K @ c.A_v + F_v @ c.S)
        # The rows see each other, so joints that carry all links do not change the wrenches in the links' axes.
        for l in range(len(touched)):
            change = inward[l].T @ w_x[l, :, k] @ inward[k] @ own[k].S
            _add(total.forces_by_q, columns[l].velocities, own[k].velocities, columns[l].S.T @ change)


def _add_joints(total: RowDerivatives, constraint: Constraint, at: slice, place: _Place, force: Any) -> None:
    """Add a constraint on joints."""
    motions, model = place.motions, place.motions.model
    alone = Mechanism(model, (constraint,), model_constraints=False)

    def near(step: Any, v: Any) -> tuple[Any, Any]:
        q = motions.q + coordinate_rates(model, motions.q, step)  # integrate, to first order
        rows, r = place.rows(alone, replace(motions, q=q, v=v))
        torques = np.zeros(model.nv)
        for dof in rows.dofs:
            torques[dof.v] = torques[dof.v] + dof.factor * force[dof.row]
        return r, torques

    (r_q, r_v), (torques_q, _) = jacobian(near, (0, 1))(np.zeros(model.nv), motions.v)
    every = range(model.nv)
    _add(total.by_q, range(at.start, at.stop), every, r_q)
    _add(total.by_v, range(at.start, at.stop), every, r_v)
    _add(total.forces_by_q, every, every, torques_q)


@dataclass(frozen=True)
class _Columns:
    """Velocities that move a link, and for each of them s, V, A_q and A_v as columns (6, n) in the base's frame."""

    velocities: list[int]
    S: Any
    V: Any
    A_q: Any
    A_v: Any

    @classmethod
    def of(cls, place: _Place, link: int, left_out: set[int]) -> _Columns:
        """Of a link, the joints of some links left out; joints that share a coordinate (mimicry) add up."""
        tree, last = place.motions.tree, place.moving[link]
        found: dict[int, tuple[Any, ...]] = {}
        for j in tree.path(link):
            if j in left_out:
                continue
            m, ratio = place.moving[j], tree.links[j].ratio
            for k, v in enumerate(tree.links[j].dofs):
                s = m.S[:, k] if ratio == 1.0 else ratio * m.S[:, k]
                V = motion_cross(m.v_parent, s)
                A_q = motion_cross(m.a_parent, s) + motion_cross(V, last.v - m.v_parent)
                A_v = motion_cross(s, last.v - m.v - m.v_parent)
                new = (s, V, A_q, A_v)
                found[v] = tuple(x + y for x, y in zip(found[v], new, strict=True)) if v in found else new
        velocities = sorted(found)
        if not velocities:
            return cls([], *(np.zeros((6, 0)) for _ in range(4)))
        return cls(
            velocities, *(np.stack(column, axis=1) for column in zip(*(found[v] for v in velocities), strict=True))
        )


def _to_link(m: Moving) -> Any:
    """The matrix (6, 6) that takes motions from the base's frame to a link's axes."""
    return adjoint(m.R.T, -(m.R.T @ m.p))


def _add(total: Any, rows: Any, columns: Any, block: Any) -> None:
    """Add a block to some rows and columns of a matrix."""
    for r, values in zip(rows, block, strict=True):
        for c, value in zip(columns, values, strict=True):
            total[r, c] = total[r, c] + value
