"""The response matrix W = M + h α D + h² α β K in a state: how velocities answer to forces and to impulses of rows.

W Δv = h (τ - bias) + Jᵀ λ is solved by the articulated-body recursion with D and K on the joints' diagonals, O(n), and
J W⁻¹ Jᵀ by a sweep over the tree (see `pv_osim`). Where joints share coordinates (mimicry), or something that is not
diagonal is added to W (geometric stiffness), W is formed and its sparse factors do the work.

Joints can be driven: their velocity after the step is given, and no force changes it (a projective constraint, in
which rows and columns of W are projected out; here the joint's D⁻¹ is zero).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.constrained.delassus.pv_osim import pv_osim
from delassus.constrained.elimination.articulated_tree import ArticulatedTree
from delassus.constrained.elimination.elimination import Loads, eliminated
from delassus.constrained.elimination.row_forces import pieces_of
from delassus.constrained.rows.jacobian import jacobian_in
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.rows import Rows
from delassus.dynamics.forces.rnea import newton_euler
from delassus.dynamics.mass.crba import mass_matrix
from delassus.dynamics.mass.factor import ancestors, factor_tree, substitute
from delassus.dynamics.tree.check import check_inertias
from delassus.dynamics.tree.poses import velocities
from delassus.dynamics.tree.sums import total
from delassus.dynamics.tree.sweep import world_acceleration
from delassus.linalg.products import mirror
from delassus.step.compliant.acting import Acting
from delassus.step.scheme.components import Component
from delassus.step.scheme.flying import turning, without_flight


class Driven(NamedTuple):
    """Velocities (nv,) that some joints have after the step, and the numbers of these velocities."""

    dofs: tuple[int, ...] = ()
    velocity: Any = None


FREE: Final = Driven()
"""No joint is driven."""


@dataclass(frozen=True)
class Response:
    """A robot and its rows in a state.

    Attributes:
        free: (nv,) the velocity after the step without impulses of rows.
        delassus: Gives J W⁻¹ Jᵀ (m, m).
        apply: Takes impulses (m,) of the rows; gives W⁻¹ Jᵀ λ (nv,).
    """

    free: Any
    delassus: Callable[[], Any]
    apply: Callable[[Any], Any]


def respond(
    motions: LinkMotions,
    rows: Rows,
    v: Any,
    acting: Acting,
    h: Any,
    driven: Driven = FREE,
    straight: bool = False,
    parts: Sequence[Component] = (),
) -> Response:
    """A step h from the velocity v (nv,), under what acts; `straight` in the axes of its beginning (see `flying`).

    Free bodies among the parts have their velocity products in their flight, not here.
    """
    check_inertias(motions.model)
    motions = kicked_motions(motions, parts)
    given = _accelerations(motions, driven, v, h)
    turned = turning_of(motions, driven) if straight else None
    if motions.tree.mimics or acting.more is not None:
        return _formed(motions, rows, v, acting, h, driven, given, turned)
    motions, links = _carried_by(motions, driven, given, turned)
    body, push = eliminated(motions, rows, None, Loads(acting.push, None), acting.added, links)
    world = world_acceleration(motions.tree)
    a = body.accelerations(push, body.order, world, motions.product)[1]
    free = v + h * (a if given is None else a + given)
    return Response(free, lambda: _by_tree(body, rows), lambda x: _answer(body, rows, x, motions.model.nv))


def kicked_motions(motions: LinkMotions, parts: Sequence[Component]) -> LinkMotions:
    """The motions that velocity products of a kick are those of: free bodies at rest."""
    if not any(part.rigid for part in parts):
        return motions
    return LinkMotions.of(motions.model, motions.q, without_flight(parts, motions.v), motions.time)


def _by_tree(body: ArticulatedTree, rows: Rows) -> Any:
    return mirror(pv_osim(body, pieces_of(body.tree, rows), rows.m))


def _answer(body: ArticulatedTree, rows: Rows, x: Any, nv: int) -> Any:
    push = np.zeros(nv)
    for i, (_, own) in body.pushes(rows, x).items():
        push[body.joints[i].at] = own
    return body.accelerations(push, range(len(body.tree.links)))[1]


def _accelerations(motions: LinkMotions, driven: Driven, v: Any, h: Any) -> Any:
    """Those (nv,) of driven joints, or None."""
    if not driven.dofs:
        return None
    given = np.zeros(motions.model.nv)
    for k in driven.dofs:
        given[k] = (driven.velocity[k] - v[k]) / h
    return given


def turning_of(motions: LinkMotions, driven: Driven = FREE) -> Any:
    """-ω × v (nv,) of joints whose velocities are in moving axes, but for those that are driven."""
    turned = turning(motions.model, motions.v)
    for k in driven.dofs:
        turned[k] = 0.0
    return turned


def _carried_by(motions: LinkMotions, driven: Driven, given: Any, turned: Any) -> tuple[LinkMotions, set[int]]:
    """Motions in which links of driven joints accelerate as these do, and of others as axes turn; those driven."""
    links, product = set(), list(motions.product)
    for i, link in enumerate(motions.tree.links):
        is_driven = bool(driven.dofs) and set(link.dofs) <= set(driven.dofs)
        if is_driven:
            links.add(i)
        if is_driven or (turned is not None and link.motion.body_axes):
            S_lin, S_ang = link.subspace
            own = velocities(link, given if is_driven else turned)
            product[i] = total(product[i], (S_lin @ own, S_ang @ own))
    return replace(motions, product=product), links


def _formed(
    motions: LinkMotions, rows: Rows, v: Any, acting: Acting, h: Any, driven: Driven, given: Any, turned: Any
) -> Response:
    """By the sparse factors of W."""
    model = motions.model
    W, J = response_matrix(motions, acting), np.array(jacobian_in(rows, motions))
    push = acting.push - newton_euler(model, motions.q, motions.v, np.zeros(model.nv) if turned is None else turned)
    if given is not None:
        push = push - W @ given
        for k in driven.dofs:
            W[k, :], W[:, k], J[:, k], push[k] = 0.0, 0.0, 0.0, 0.0
            W[k, k] = 1.0
    every = [list(range(model.nv))]
    above = ancestors(model, every if acting.more is not None else ())
    U, D = factor_tree(above, W)

    def solve(b: Any) -> Any:
        return substitute(above, U, D, b)

    a = solve(push)
    return Response(
        v + h * (a if given is None else a + given),
        lambda: J @ np.stack([solve(row) for row in J], axis=1),
        lambda x: solve(J.T @ x),
    )


def response_matrix(motions: LinkMotions, acting: Acting) -> Any:
    """W (nv, nv), formed."""
    W = np.array(mass_matrix(motions.model, motions.q))
    W = W if acting.added is None else W + np.diag(acting.added)
    return W if acting.more is None else W + acting.more
