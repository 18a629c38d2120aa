"""Kernels of contact inverse dynamics: contact forces that explain a motion, and the remaining torques.

For accelerations a, tau = M a + c - Jᵀ f; the velocity after a step is v + h a, in the body axes at its end. The motion
does not determine the forces of rigid contacts: a closed contact may have any force in its cone. But some velocities
have no motor, such as those of a free base. The forces are those with the smallest remaining torque tau_u there:

    minimize ‖tau_u‖² in the metric of M_uu⁻¹,   f in its cones

Contacts that open have no force, and those that slide have the largest friction, against the sliding velocity.

The motion determines the forces of compliant contacts in closed form (see `inverse_impulses`).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.host.inputs import Group
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constrained.solvers.status import Status
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.contact.cones.kinds import Free
from delassus.contact.cones.parameters import ContactParameters, RowParameters
from delassus.contact.solvers.options import SolverInputs
from delassus.contact.solvers.solve import solve_contacts
from delassus.dynamics.forces.rnea import rnea
from delassus.dynamics.mass.crba import crba
from delassus.step.compliant.kinematics import RowKinematics
from delassus.step.compliant.rows import dynamics_values
from delassus.step.contact.rigid import STEP, row_inputs
from delassus.step.laws.inputs import NOTHING, RELAXATION, ContactInputs, RowRelaxation, surroundings
from delassus.step.laws.inverse_impulses import explain_impulses
from delassus.step.laws.pyramids import edges_of, pyramids
from delassus.step.laws.relaxed import RELAXED, rows_relaxed
from delassus.step.points.coefficients import coefficients_of
from delassus.step.scene import Scene
from delassus.step.scheme.components import components
from delassus.step.scheme.manifold_step import turning, velocity_at_start, without_flight

_SURROUNDINGS: Final = surroundings(
    Group(ContactParameters, friction="(points)", torsional="(torsional)", rolling="(rolling)", compliance="(points)")
)
SHARE: Final = 1e-9
"""Compliance of the rows of rigid contacts, as a fraction of their response, which selects small forces."""

UNEXPLAINED: Final = 1e-6
"""Largest generalized force that may remain at velocities without a motor, as a fraction of all."""


@kernel("(nq),(nv),(nv),()->(nv),(m),(points),()", inputs={"surroundings": _SURROUNDINGS, "yielding": "(m)"})
def explain_yielding(
    scene: Scene,
    q: Any,
    v: Any,
    a: Any,
    time_step: Any,
    *,
    surroundings: ContactInputs = NOTHING,
    yielding: Any = None,
    law: str = "ncp",
) -> tuple[Floats, Floats, Floats, Floats]:
    """Torques (nv,), forces (m,), gaps (points,) and a `Status`; rows have the compliance `yielding` (m,) [1/kg]."""
    friction, torsional, rolling, *_ = surroundings.contact
    mechanism, motion = _motion_of_step(scene, (q, v, a), time_step, surroundings)
    R = yielding + motion.compliance
    for k, (own, others) in enumerate(coefficients_of(scene, friction, torsional, rolling)):
        for row, coefficient in zip(own[3:], others[2:], strict=True):
            share = friction[k] / np.where(coefficient > 0.0, coefficient, 1.0)
            R[row] = R[own[0]] * share * share
    time, bounds = surroundings.time, np.array(scene.friction_bounds) * time_step
    impulse = explain_impulses(scene, law == "ccp", motion.demand, R, (friction, torsional, rolling), (-bounds, bounds))
    force = impulse / time_step
    J = constraint_jacobian.function(mechanism, q, time=time)
    torque = motion.torque - J.T @ force
    return torque, force, motion.gap, _finite(torque, force)


@kernel(
    "(nq),(nv),(nv),()->(nv),(m),(m),(points),(),()",
    inputs={
        "surroundings": _SURROUNDINGS,
        "passive": "(nv)",
        "tau": "(nv)",
        "rest_speed": "()",
        "solver": Group(SolverInputs, tolerance="()", iterations="()"),
    },
)
def explain_rigid(
    scene: Scene,
    q: Any,
    v: Any,
    a: Any,
    time_step: Any,
    *,
    surroundings: ContactInputs = NOTHING,
    passive: Any = None,
    tau: Any = None,
    rest_speed: Any = None,
    solver: SolverInputs,
    method: str = "auto",
) -> tuple[Floats, ...]:
    """Torques (nv,), forces (m,), residual (m,), gaps (points,), iterations and a `Status`.

    `passive` (nv,) is 1 for velocities without a motor and 0 for others; `tau` (nv,) are known forces.
    """
    friction, torsional, rolling, *_ = surroundings.contact
    mechanism, motion = _motion_of_step(scene, (q, v, a), time_step, surroundings)
    J = constraint_jacobian.function(mechanism, q, time=surroundings.time)
    needed = motion.torque
    known = needed if tau is None else needed - tau
    B = _directions(scene, motion.rates, motion.demand, friction, torsional, rolling, rest_speed)
    J_u = (J.T @ B).T * passive[None, :]
    M = crba(mechanism.model, q) * passive[:, None] * passive[None, :] + np.diag(1.0 - passive)
    A = np.linalg.solve(M, J_u.T, assume_a="pos")
    G, g = J_u @ A, -(A.T @ (passive * known))
    bounds = np.array(scene.friction_bounds) if scene.friction_bounds else None
    response = np.max(np.stack([G[r, r] for r in range(scene.m)]))
    R = np.ones(scene.m) * SHARE * np.where(response > 0.0, response, 1.0)
    parameters = RowParameters(friction, torsional, rolling, None if bounds is None else -bounds, bounds, R)
    force, _, residual, count, status = solve_contacts(
        scene.layout, G, g, rows=parameters, solver=solver, law="ccp", method=method
    )
    force = B @ force
    torque = needed - J.T @ force
    left = passive * (torque if tau is None else torque - tau)
    much = np.max(np.abs(left)) > UNEXPLAINED * (np.max(np.abs(needed)) + np.max(np.abs(J.T @ force)))
    status = np.where(much & (status == float(Status.CONVERGED)), float(Status.LEAST_SQUARES), status)
    return torque, force, residual, motion.gap, count, status


@kernel("(nq),(nv),(nv),()->(nv),(m),(points),()", inputs={"surroundings": RELAXED, "relaxation": RELAXATION})
def explain_relaxed(
    scene: Scene,
    q: Any,
    v: Any,
    a: Any,
    time_step: Any,
    *,
    relaxation: RowRelaxation,
    surroundings: ContactInputs = NOTHING,
    cone: str = "elliptic",
) -> tuple[Floats, Floats, Floats, Floats]:
    """Torques (nv,), forces (m,), gaps (points,) and a `Status` of the relaxed model."""
    contact, _, planes, time = surroundings
    friction, torsional, rolling, *_ = contact
    mechanism = scene.on_planes(*planes)
    rows = rows_relaxed(scene, mechanism, q, v, a, time_step, relaxation, contact, time)
    c, bounds = rows.free - rows.wanted, np.array(scene.friction_bounds)
    force = explain_impulses(scene, True, c, rows.R, (friction, torsional, rolling), (-bounds, bounds))
    if cone == "pyramidal":
        edges = edges_of(scene, friction, torsional, rolling)
        _, R = pyramids(scene, rows.R, relaxation.impratio, friction)
        start = scene.bilateral.start
        along = np.maximum(-(edges @ c) / R, 0.0)
        count = len(R) - (scene.m - start)
        pushed = edges[:count].T @ along[:count]
        force[:start] = pushed[:start]
    force = force * rows.on
    J = constraint_jacobian.function(mechanism, q, time=time)
    torque = rnea(mechanism.model, q, v, a) - J.T @ force
    return torque, force, rows.gap, _finite(torque, force)


class StepMotion(NamedTuple):
    """A step with given accelerations: the required torques (nv,), row velocities J v⁺ (m,), c = J v⁺ + b (m,), the
    compliance of rows (m,), and gaps (points,)."""

    torque: Any
    rates: Any
    demand: Any
    compliance: Any
    gap: Any


def _motion_of_step(
    scene: Scene, motion: tuple[Any, Any, Any], h: Any, surroundings: ContactInputs
) -> tuple[Mechanism, StepMotion]:
    """The mechanism of the scene with its planes, and the step h from v (nv,) to v + h a, in the body axes at its end;
    `motion` is q, v, a."""
    (q, v, a), mechanism = motion, scene.on_planes(*surroundings.planes)
    inputs = row_inputs(scene, h, surroundings.contact.compliance, None, surroundings.stabilization)
    state, model = RowKinematics.of(scene, mechanism, q, v, surroundings.time), mechanism.model
    parts = components(state.scene.mechanism, q)
    after, moving = velocity_at_start(state.scene.model, parts, q, v + h * a, h), without_flight(parts, v)
    torque = rnea(model, q, moving, (after - v) / h + turning(model, moving))
    rates, values = state.velocities(after), dynamics_values(state, inputs, STEP)
    return mechanism, StepMotion(torque, rates, rates + values.bias, values.compliance, state.gap)


def _directions(scene: Scene, moving: Any, c: Any, friction: Any, torsional: Any, rolling: Any, slow: Any) -> Any:
    """The matrix B (m, m) of forces f = B x with x in the cones: opening rows have no force, sliding rows friction."""
    B = np.zeros((scene.m, scene.m))
    for own, others in coefficients_of(scene, friction, torsional, rolling):
        closed = np.where(c[own[2]] <= slow, 1.0, 0.0)
        rows = [*own[:2], *own[3:]]
        speed = np.sqrt(sum((x * moving[row]) * (x * moving[row]) for row, x in zip(rows, others, strict=True)))
        sliding = np.sqrt(sum(moving[row] * moving[row] for row in rows)) > slow
        B[own[2], own[2]] = closed
        for row, x in zip(rows, others, strict=True):
            B[row, row] = np.where(sliding, 0.0, closed)
            brake = -x * x * moving[row] / np.where(speed > 0.0, speed, 1.0)
            B[row, own[2]] = np.where(sliding, closed * brake, 0.0)
    for row in scene.stop_rows:
        B[row, row] = np.where(c[row] <= slow, 1.0, 0.0)
    for row in (*scene.layout.rows(Free), *range(scene.m - len(scene.friction_bounds), scene.m)):
        B[row, row] = 1.0
    return B


def _finite(*arrays: Any) -> Any:
    total = sum(np.sum(x) for x in arrays)
    return np.where(np.isfinite(total), float(Status.CONVERGED), float(Status.NOT_FINITE))
