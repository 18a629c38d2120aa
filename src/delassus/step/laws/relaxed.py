"""MuJoCo's contact law: rows have a reference acceleration a*, and a compliance R.

    f = argmin ½ fᵀ (G + R) f + fᵀ (a_f - a*),   f in its cones:   J a + R f = a* where no cone is active

with the accelerations a_f of the rows without forces. A row with the violation r, the velocity v, the impedance d(r)
and the weight Â (see `weights`) has

    a* = -b v - k d(r) r,      R = (1 - d)/d · Â

With solref = (t, z) and the impedance d_w at full width, b = 2/(d_w t) and k = 1/(d_w t z)², where t is at least two
time steps. Tangential rows have k = 0 and R_t = R_n/impratio, which for rows of moments is multiplied by
(friction/coefficient)². With a pyramid in place of the elliptic cone, forces along its edges n ± friction·t are
nonnegative. Each edge has R = 2 friction²/impratio times that of the first edge, whose weight is (1 + friction²) Â.

Contacts and limits act if their gap is closed. The contact point is midway between the surfaces. The accelerations of
contacts and of rows on joints are J a without J̇ v; those of constraints on bodies include J̇ v. Welds have quaternion
rows (see `quaternion_weld`).

For rows without an active cone this is one proximal iteration with ε = R (see `prox_pv`).

References: E. Todorov, Convex and analytically-invertible dynamics with contacts and constraints (2014); the chapter
on computation of MuJoCo's documentation.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.delassus.delassus_methods import lower_delassus
from delassus.constrained.rows.jacobian import link_values
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.constraints.mechanism.rows import row_values, rows_in
from delassus.contact.cones.parameters import ContactParameters, RowParameters
from delassus.contact.solvers.options import SolverInputs
from delassus.contact.solvers.solve import solve_contacts
from delassus.dynamics.forces.aba import aba
from delassus.linalg.products import mirror
from delassus.step.laws.finite_flags import flag_not_finite
from delassus.step.laws.impedance import LEAST, gains, impedances
from delassus.step.laws.inputs import (
    CONES as CONE_INPUTS,
)
from delassus.step.laws.inputs import (
    NOTHING,
    RELAXATION,
    SOLVER,
    ContactInputs,
    RowRelaxation,
    surroundings,
)
from delassus.step.laws.pyramids import edges_of, normals_of, pyramids
from delassus.step.points.coefficients import coefficients_of
from delassus.step.points.geometry import gaps
from delassus.step.points.response import responding
from delassus.step.scene import Scene

CONES: Final = ("elliptic", "pyramidal")

RELAXED: Final = surroundings(CONE_INPUTS, stabilized=False)


class RelaxedRows(NamedTuple):
    """R, a* and the accelerations (m,) of the rows, 1 or 0 whether they act, joint accelerations (nv,), and gaps."""

    R: Any
    wanted: Any
    free: Any
    on: Any
    acceleration: Any
    gap: Any
    mechanism: Mechanism


@kernel("(nq),(nv),(nv),()->(m,m),(m),(m),(m),(m)", inputs={"surroundings": RELAXED, "relaxation": RELAXATION})
def relaxed_rows(
    scene: Scene,
    q: Any,
    v: Any,
    tau: Any,
    time_step: Any,
    *,
    surroundings: ContactInputs = NOTHING,
    relaxation: RowRelaxation,
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """G (m, m), R (m,) [1/kg], a* (m,), a_f (m,) [m/s²], and 1 or 0 (m,) whether rows act, for elliptic cones."""
    rows = _free_rows(scene, (q, v, tau), time_step, surroundings, relaxation)
    time = surroundings.time
    return _matrix(rows, q, time), rows.R, rows.wanted, rows.free, rows.on


@kernel(
    "(nq),(nv),(nv),()->(nv),(m),(m),(m),(points),(),()",
    inputs={"surroundings": RELAXED, "relaxation": RELAXATION, "solver": SOLVER},
)
def relaxed_forces(
    scene: Scene,
    q: Any,
    v: Any,
    tau: Any,
    time_step: Any,
    *,
    surroundings: ContactInputs = NOTHING,
    relaxation: RowRelaxation,
    solver: SolverInputs,
    cone: str = "elliptic",
    method: str = "auto",
) -> tuple[Floats, ...]:
    """Accelerations (nv,), forces (m,), σ (m,), residual (m,), gaps (points,), iterations, and a `Status`.

    With a time step of zero, time constants have no lower bound.
    """
    (friction, torsional, rolling, *_), _, _, time = surroundings
    rows = _free_rows(scene, (q, v, tau), time_step, surroundings, relaxation)
    G = _matrix(rows, q, time)
    g, R, layout = (rows.free - rows.wanted) * rows.on, rows.R, scene.layout
    edges = edges_of(scene, friction, torsional, rolling) if cone == "pyramidal" else None
    if edges is not None:
        layout, R = pyramids(scene, R, relaxation.impratio, friction)
        G, g = edges @ G @ edges.T, edges @ g
        solver = solver._replace(start=None)  # forces along edges are not unique
    bounds = np.array(scene.friction_bounds) if scene.friction_bounds else None
    parameters = RowParameters(lower=None if bounds is None else -bounds, upper=bounds, compliance=R)
    if edges is None:
        parameters = parameters._replace(friction=friction, torsional=torsional, rolling=rolling)
    force, moving, residual, count, status = solve_contacts(
        layout, G, g, rows=parameters, solver=solver, law="ccp", method=method
    )
    if edges is not None:
        force, moving, residual = edges.T @ force, normals_of(scene, moving), normals_of(scene, residual)
    force = force * rows.on
    after = rows.acceleration + responding(rows.mechanism, q, time)(force)
    return after, force, moving, residual, rows.gap, count, flag_not_finite(status, rows.gap)


def _free_rows(
    scene: Scene, state: tuple[Any, Any, Any], h: Any, surroundings: ContactInputs, relaxation: RowRelaxation
) -> RelaxedRows:
    """The rows of a state (q, v, tau), with the accelerations without row forces."""
    contact, _, planes, time = surroundings
    mechanism = scene.on_planes(*planes)
    free = aba(mechanism.model, *state)
    return rows_relaxed(scene, mechanism, *state[:2], free, h, relaxation, contact, time)


def _matrix(rows: RelaxedRows, q: Any, time: Any) -> Any:
    """G (m, m) of the rows that act."""
    return mirror(lower_delassus(rows.mechanism, q, "auto", time)) * rows.on[:, None] * rows.on[None, :]


def rows_relaxed(
    scene: Scene,
    mechanism: Mechanism,
    q: Any,
    v: Any,
    acceleration: Any,
    h: Any,
    relaxation: RowRelaxation,
    contact: ContactParameters,
    time: Any,
) -> RelaxedRows:
    """R and a* of the rows of a scene in a state with accelerations (nv,)."""
    weight, reference, impedance, impratio = relaxation
    friction, torsional, rolling, *_ = contact
    motions = LinkMotions.of(mechanism.model, q, v, time)
    resting = LinkMotions.of(mechanism.model, q, np.zeros(scene.nv), time)
    rows = rows_in(mechanism, motions)
    free, whole = link_values(rows, resting, _straight(motions, acceleration)), link_values(rows, motions, acceleration)
    moving = row_values(rows, motions.velocity, v)
    position, size, on = np.zeros(scene.m), np.zeros(scene.m), np.ones(scene.m)
    gap = gaps(scene, mechanism, motions)
    for k, own in enumerate(scene.layout.friction):
        touches = np.where(gap[k] < 0.0, 1.0, 0.0)
        position[own[2]] = gap[k]
        for row in own:
            size[row], on[row] = gap[k], touches
    for row, stop in zip(scene.stop_rows, scene.stops, strict=True):
        position[row] = size[row] = stop.gap(motions)
        on[row] = np.where(position[row] < 0.0, 1.0, 0.0)
    start = scene.bilateral.start
    for constraint, at in zip(scene.bilateral_constraints, scene.mechanism.row_ranges(), strict=True):
        held = slice(start + at.start, start + at.stop)
        if constraint.has_reference:
            error = constraint.position_error(motions)
            position[held] = error
            size[held] = np.sqrt(np.sum(error * error))
        if constraint.links(mechanism.model):
            free[held] = whole[held] + constraint.velocity_product(motions)
    d, R, wanted = impedances(impedance, size), np.zeros(scene.m), np.zeros(scene.m)
    unlimited = {row for own in scene.layout.friction for row in own if row != own[2]}
    unlimited |= set(range(scene.m - len(scene.friction_bounds), scene.m))
    for row in range(scene.m):
        R[row] = np.maximum((1.0 - d[row]) / d[row] * weight[row], LEAST)
        stiffness, damping = gains(reference[row], impedance[row, 1], h)
        pull = 0.0 if row in unlimited else stiffness * d[row] * position[row]
        wanted[row] = -damping * moving[row] - pull
    R = _across(scene, R, impratio, friction, torsional, rolling)
    return RelaxedRows(R, wanted, free, on, acceleration, gap, mechanism)


def _straight(motions: LinkMotions, a: Any) -> Any:
    """Accelerations (nv,) with those of free joints along fixed world axes, as in MuJoCo."""
    result = np.array(a)
    for link in motions.tree.links:
        if link.motion.is_free:
            lin, ang = motions.v[link.v : link.v + 3], motions.v[link.v + 3 : link.v + 6]
            result[link.v : link.v + 3] = a[link.v : link.v + 3] + np.cross(ang, lin)
    return result


def _across(scene: Scene, R: Any, impratio: Any, friction: Any, torsional: Any, rolling: Any) -> Any:
    """R (m,) with the values of tangential rows, computed from those of the normals."""
    ratio = 1.0 if impratio is None else impratio
    for k, (own, others) in enumerate(coefficients_of(scene, friction, torsional, rolling)):
        across = R[own[2]] / ratio
        R[own[0]] = R[own[1]] = across
        for row, coefficient in zip(own[3:], others[2:], strict=True):
            share = friction[k] / np.where(coefficient > 0.0, coefficient, 1.0)
            R[row] = across * share * share
    return R
