"""The response W = M + h α D + h² α β K of velocities to forces and row impulses.

The articulated-body recursion, with D and K of joints on its diagonals, solves W Δv = h (τ - bias) + Jᵀ λ in O(n). A
sweep over the tree computes J W⁻¹ Jᵀ (see `pv_osim`). In three cases, W is formed and its sparse factors are used
instead: joints share coordinates (mimic joints), W has other off-diagonal terms (tendons, geometric stiffness), or rows
are dense (contacts of shapes).

The velocity of a driven joint after the step is prescribed, and no force changes it. This is a projective constraint:
its rows and columns of W are projected out. In the recursion, D⁻¹ of the joint is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.constrained.elimination.elimination import Loads, eliminate_joints
from delassus.constrained.rows.jacobian import jacobian_in
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.rows import Rows
from delassus.dynamics.forces.rnea import newton_euler
from delassus.dynamics.mass.crba import mass_matrix
from delassus.dynamics.mass.factor import ancestors, factor_tree
from delassus.dynamics.tree.check import check_inertias
from delassus.dynamics.tree.poses import velocities
from delassus.dynamics.tree.sums import total
from delassus.dynamics.tree.sweep import world_acceleration
from delassus.step.actuators.forces import Forces
from delassus.step.scheme.components import Component
from delassus.step.scheme.manifold_step import turning, without_flight
from delassus.step.scheme.response import ArticulatedResponse, FactoredResponse, Response


class PrescribedVelocities(NamedTuple):
    """Prescribed velocities (nv,) of driven joints after the step, and the indices of these velocities."""

    dofs: tuple[int, ...] = ()
    velocity: Any = None


DENSE: Final = 6
"""Average number of velocities in a row above which the factors of W are used: the recursion would pass such rows
through the whole tree."""

FREE: Final = PrescribedVelocities()
"""No joint is driven."""


def free_response(
    motions: LinkMotions,
    rows: Rows,
    v: Any,
    forces: Forces,
    h: Any,
    driven: PrescribedVelocities = FREE,
    straight: bool = False,
    parts: Sequence[Component] = (),
) -> tuple[Any, Response]:
    """The velocity (nv,) after a step h from v (nv,) without row impulses, and the response to row impulses.

    If `straight`, it is in the body axes at the start of the step (see `manifold_step`). The velocity products of free
    bodies among the parts are not included; `integrate_velocity` adds them.
    """
    check_inertias(motions.model)
    motions = motions_without_flight(motions, parts)
    given = _accelerations(motions, driven, v, h)
    turned = turning_of(motions, driven) if straight else None
    if motions.tree.mimics or forces.coupling is not None or len(rows.dofs) > DENSE * rows.m:
        return _by_factors(motions, rows, v, forces, h, driven, given, turned)
    motions, links = _prescribed_motions(motions, driven, given, turned)
    body, push = eliminate_joints(motions, rows, None, Loads(forces.force, None), forces.added, links)
    a = body.accelerations(push, body.order, world_acceleration(motions.tree), motions.product)[1]
    return v + h * (a if given is None else a + given), ArticulatedResponse(body, rows, motions)


def motions_without_flight(motions: LinkMotions, parts: Sequence[Component]) -> LinkMotions:
    """The motions from which velocity products are computed, with free bodies at rest."""
    if not any(part.rigid for part in parts):
        return motions
    return LinkMotions.of(motions.model, motions.q, without_flight(parts, motions.v), motions.time)


def _accelerations(motions: LinkMotions, driven: PrescribedVelocities, v: Any, h: Any) -> Any:
    """The accelerations (nv,) of driven joints; None if no joint is driven."""
    if not driven.dofs:
        return None
    given = np.zeros(motions.model.nv)
    for k in driven.dofs:
        given[k] = (driven.velocity[k] - v[k]) / h
    return given


def turning_of(motions: LinkMotions, driven: PrescribedVelocities = FREE) -> Any:
    """-ω × v (nv,) of joints whose velocities are in moving axes, except driven joints."""
    turned = turning(motions.model, motions.v)
    for k in driven.dofs:
        turned[k] = 0.0
    return turned


def _prescribed_motions(
    motions: LinkMotions, driven: PrescribedVelocities, given: Any, turned: Any
) -> tuple[LinkMotions, set[int]]:
    """Motions with the accelerations of driven joints and those due to moving axes, and the driven joints."""
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


def _by_factors(
    motions: LinkMotions,
    rows: Rows,
    v: Any,
    forces: Forces,
    h: Any,
    driven: PrescribedVelocities,
    given: Any,
    turned: Any,
) -> tuple[Any, FactoredResponse]:
    """The free velocity and the response, by the sparse factors of W."""
    model = motions.model
    W, J = response_matrix(motions, forces), jacobian_in(rows, motions)
    free_J = np.array(J)
    push = forces.force - newton_euler(model, motions.q, motions.v, np.zeros(model.nv) if turned is None else turned)
    if given is not None:
        push = push - W @ given
        for k in driven.dofs:
            W[k, :], W[:, k], free_J[:, k], push[k] = 0.0, 0.0, 0.0, 0.0
            W[k, k] = 1.0
    every = [list(range(model.nv))]
    above = ancestors(model, every if forces.coupling is not None else ())
    response = FactoredResponse(above, *factor_tree(above, W), J, free_J)
    a = response.solve(push)
    return v + h * (a if given is None else a + given), response


def response_matrix(motions: LinkMotions, forces: Forces) -> Any:
    """The matrix W (nv, nv)."""
    W = np.array(mass_matrix(motions.model, motions.q))
    W = W if forces.added is None else W + np.diag(forces.added)
    return W if forces.coupling is None else W + forces.coupling
