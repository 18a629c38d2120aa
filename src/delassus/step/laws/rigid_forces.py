"""Rigid contact without a time step: accelerations and forces.

    open        the gap is positive, or opening: no force
    sliding     f_t = -friction · f_n along the sliding velocity, and 0 ≤ f_n ⊥ a_n ≥ 0
    sticking    the point is at rest: Coulomb's law with the tangential acceleration in place of the velocity

The friction of a sliding contact is proportional to its normal force, so f_n accelerates the contact along its normal
by n · G (n - friction t) f_n. This may be negative: friction rotates the body into the ground faster than the normal
force lifts it (Painlevé's paradox). Then there are either two solutions, of which the one without force is returned, or
none, and only an impulse satisfies the laws; `contact_dynamics` with a time step computes it. The status is
`NO_SOLUTION` if the solver did not converge and a contact slides in this way. A contact that approaches is an impact
and needs a time step, too.

Inactive rows keep the diagonal of G and have a zero right-hand side.

Reference: P. Painlevé, Sur les lois du frottement de glissement (1895); B. Brogliato, Nonsmooth Mechanics (2016).
"""

from __future__ import annotations

from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.compiler.host.inputs import Bundle, Group
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.delassus.delassus_methods import lower_delassus
from delassus.constrained.rows.jacobian import link_values
from delassus.constrained.solvers.status import Status
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.rows import compliance_of, right_hand_side, row_values, rows_in
from delassus.contact.cones.parameters import RowParameters
from delassus.contact.solvers.choice import solve_by_name
from delassus.contact.solvers.options import SolverInputs
from delassus.contact.solvers.progress import Budget, initial_best
from delassus.contact.systems.scaled import Scaled, shape_of
from delassus.dynamics.forces.aba import aba
from delassus.linalg.products import mirror
from delassus.step.laws.finite_flags import flag_not_finite
from delassus.step.laws.inputs import CONES, NOTHING, SOLVER, ContactInputs, surroundings
from delassus.step.points.coefficients import coefficients_of
from delassus.step.points.geometry import gaps
from delassus.step.points.response import responding
from delassus.step.scene import Scene

_INPUTS: Final[dict[str, Bundle | Group | str]] = {
    "surroundings": surroundings(CONES, stabilized=False),
    "solver": SOLVER,
    "rest_gap": "()",
    "rest_speed": "()",
}


@kernel("(nq),(nv),(nv)->(nv),(m),(m),(m),(points),(),()", inputs=_INPUTS)
def rigid_forces(
    scene: Scene,
    q: Any,
    v: Any,
    tau: Any,
    *,
    surroundings: ContactInputs = NOTHING,
    solver: SolverInputs,
    rest_gap: Any = None,
    rest_speed: Any = None,
    law: str = "ncp",
    method: str = "auto",
) -> tuple[Floats, ...]:
    """Accelerations (nv,), forces (m,), row accelerations (m,), residual (m,), gaps (points,), iterations, status."""
    (friction, torsional, rolling, *_), _, planes, time = surroundings
    start, tolerance, iterations = solver
    mechanism = scene.on_planes(*planes)
    motions = LinkMotions.of(mechanism.model, q, v, time)
    rows = rows_in(mechanism, motions)
    free = aba(mechanism.model, q, v, tau)
    b = link_values(rows, motions, free) - right_hand_side(mechanism, rows, motions)
    gap, moving = gaps(scene, mechanism, motions), row_values(rows, motions.velocity, v)
    G = mirror(lower_delassus(mechanism, q, "auto", time))

    # on: active rows. B: forces as functions of the unknowns. wedged: whether f_n accelerates a sliding contact inward.
    on, B, wedged = np.ones(scene.m), np.array(numpy.eye(scene.m)), np.array(False)
    for k, (own, others) in enumerate(coefficients_of(scene, friction, torsional, rolling)):
        closed = (gap[k] <= rest_gap) & (moving[own[2]] <= rest_speed)
        tangents = [*own[:2], *own[3:]]
        slides = closed & (np.sqrt(sum(moving[row] * moving[row] for row in tangents)) > rest_speed)
        speed = np.sqrt(sum((x * moving[row]) * (x * moving[row]) for row, x in zip(tangents, others, strict=True)))
        on[own[2]] = np.where(closed, 1.0, 0.0)
        for row, x in zip(tangents, others, strict=True):
            on[row] = np.where(closed & ~slides, 1.0, 0.0)
            brake = -x * x * moving[row] / np.where(speed > 0.0, speed, 1.0)
            B[row, own[2]] = np.where(slides, brake, 0.0)
        lift = G[own[2]] @ B[:, own[2]]
        wedged = wedged | (slides & (lift <= 0.0))
    for row, stop in zip(scene.stop_rows, scene.stops, strict=True):
        closed = (stop.gap(motions) <= rest_gap) & (moving[row] <= rest_speed)
        on[row] = np.where(closed, 1.0, 0.0)
    lower, upper = _bounds(scene, moving, rest_speed)

    own_response = np.stack([G[row, row] for row in range(scene.m)]) * (1.0 - on)
    A = (G @ B) * on[:, None] * on[None, :] + np.diag(own_response)
    compliance = compliance_of(mechanism)
    if numpy.any(compliance):
        A = A + np.diag(compliance)
    factors = shape_of(scene.layout, friction, torsional, rolling)
    order = list(scene.layout.order)
    symmetric = Scaled.of(
        scene.layout, law == "ccp", G, on * b, RowParameters(friction, torsional, rolling, lower, upper)
    )
    f = factors[order] / symmetric.root
    problem = symmetric._replace(G=A[order][:, order] * f[:, None] * f[None, :])
    most = 1000.0 if iterations is None else iterations
    budget = Budget(1e-8 if tolerance is None else tolerance, most, warm=start is not None)
    first = initial_best(problem, None if start is None else problem.to_scaled(start, factors))
    result = solve_by_name(problem, first, budget, method)
    best = result.best

    force = B @ (on * problem.from_scaled(best.impulse, factors))
    residual = problem.residual_given(problem.residual(best.impulse, best.velocity), factors)
    acceleration = free + responding(mechanism, q, time)(force)
    solved = best.error <= budget.tolerance
    status = np.where(solved, float(Status.CONVERGED), float(Status.ITERATIONS))
    status = np.where(result.contradictory, float(Status.INFEASIBLE), status)
    unsolved = (status != float(Status.CONVERGED)) & wedged
    status = np.where(unsolved, float(Status.NO_SOLUTION), status)
    known = [x for x in (q, v, tau, friction, torsional, rolling, *planes) if x is not None]
    finite = np.isfinite(np.sum(force) + np.sum(acceleration))
    for x in known:
        finite = finite & ~np.any(np.isnan(x))
    status = flag_not_finite(np.where(finite, status, float(Status.NOT_FINITE)), gap)
    return acceleration, force, G @ force + b, residual, gap, best.count, status


def _bounds(scene: Scene, moving: Any, slow: Any) -> tuple[Any, Any]:
    """Bounds (intervals,) of joint friction; they are equal if the joint moves."""
    if not scene.friction_bounds:
        return None, None
    lower, upper = [], []
    for row, bound in zip(range(scene.m - len(scene.friction_bounds), scene.m), scene.friction_bounds, strict=True):
        lower.append(np.where(moving[row] < -slow, bound, -bound))
        upper.append(np.where(moving[row] > slow, -bound, bound))
    return np.stack(lower), np.stack(upper)
