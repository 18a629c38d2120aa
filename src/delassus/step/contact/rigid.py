"""Kernels of a time step with contact: the problem σ = (G + R) λ + g, and its solution.

It is the step of the compliant scheme (see `compliant.pipeline`) with α = β = 1 and without springs and dampers of
joints: W = M. All rows are rigid except contacts with a compliance. The rows have these equations:

    contacts, limits    J v⁺ + gap/h ≥ 0: a gap may close but not become negative. A step corrects the fraction
                        `stabilization` of a penetration; by default none, so that no body gains velocity from it.
    impacts             J v⁺ ≥ the rebound velocity (see `impacts.detection`), reduced if, with friction, the rebound
                        would add energy (see `dissipation`).
    compliant contacts  J v⁺ + gap/h + C/h² λ ≥ 0: a spring with stiffness 1/C, implicit.
    constraints         J v⁺ = the velocity of the reference, minus the fraction `stabilization` of the error per h;
                        with gains or a target acceleration, J v⁺ = J v + h a*.
    joint friction      J v⁺ = 0, unless the impulse is at a bound.
"""

from __future__ import annotations

from typing import Any, Final

import delassus.numpy as np
from delassus.compiler.host.inputs import Bundle
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.contact.solvers.options import SolverInputs
from delassus.model.model import Model
from delassus.step.actuators.forces import Forces
from delassus.step.compliant.assemble import assemble
from delassus.step.compliant.kinematics import RowKinematics
from delassus.step.compliant.pipeline import solve_contact_law, solve_with_restitution
from delassus.step.compliant.types import ConeInputs, Recovery, RowInputs, RowNumbers, StepOptions, StepSetup
from delassus.step.laws.finite_flags import flag_not_finite
from delassus.step.laws.inputs import CONTACT, NOTHING, SOLVER, ContactInputs, surroundings
from delassus.step.scene import Scene
from delassus.step.scheme.blend import Blend
from delassus.step.scheme.components import components
from delassus.step.scheme.manifold_step import free_bodies, integrate_velocity, turning
from delassus.step.scheme.rigid_flight import kick_acceleration

STEP: Final = StepOptions(impacts="start")
"""Options of a step with impacts at its start."""
_OPTIONS: Final = StepOptions()


@kernel(
    "(nq),(nv),(nv),()->(m,m),(m),(m),(points),(nv)",
    inputs={"surroundings": surroundings(CONTACT), "restitution_share": "()"},
)
def assemble_contacts(
    scene: Scene,
    q: Any,
    v: Any,
    tau: Any,
    time_step: Any,
    *,
    surroundings: ContactInputs = NOTHING,
    restitution_share: Any = None,
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """G (m, m), g (m,), R (m,), gaps (points,) and the free velocity (nv,) of a step."""
    kinematics = RowKinematics.of(scene, scene.on_planes(*surroundings.planes), q, v, surroundings.time)
    return assemble_rows(kinematics, (q, v, tau, time_step), surroundings, restitution_share)


def assemble_rows(
    kinematics: RowKinematics, state: tuple[Any, Any, Any, Any], surroundings: ContactInputs, restitution_share: Any
) -> tuple[Any, Any, Any, Any, Any]:
    """The results of `assemble_contacts` from known gaps and rows; `state` is q, v, tau and h."""
    (q, v, tau, time_step), (contact, stabilization, *_), scene = state, surroundings, kinematics.scene
    inputs = row_inputs(scene, time_step, contact.compliance, contact.restitution, stabilization)
    setup = StepSetup(Forces(tau), inputs, ConeInputs(), STEP, components(scene.mechanism, q))
    system = assemble(kinematics, v, setup)
    g = system.after + system.values.bias_with_restitution(restitution_share)
    return system.G, g, system.values.compliance, kinematics.gap, system.free_velocity


@kernel(
    "(nq),(nv),(nv),()->(nq),(nv),(m),(m),(m),(points),(),(),()",
    inputs={
        "surroundings": surroundings(CONTACT),
        "solver": SOLVER,
        "options": Bundle(StepOptions, "law", "method", "faces", "pyramid"),
    },
)
def contact_step(
    scene: Scene,
    q: Any,
    v: Any,
    tau: Any,
    time_step: Any,
    *,
    surroundings: ContactInputs = NOTHING,
    solver: SolverInputs,
    options: StepOptions = _OPTIONS,
) -> tuple[Floats, ...]:
    """q⁺ (nq,), v⁺ (nv,), impulses (m,), σ (m,), residual (m,), gaps (points,), iterations, status, and the fraction of
    restitution that adds no energy."""
    kinematics = RowKinematics.of(scene, scene.on_planes(*surroundings.planes), q, v, surroundings.time)
    return solve_step(kinematics, (q, v, tau, time_step), surroundings, solver, options)


def solve_step(
    kinematics: RowKinematics,
    state: tuple[Any, Any, Any, Any],
    surroundings: ContactInputs,
    solver: SolverInputs,
    options: StepOptions,
) -> tuple[Any, ...]:
    """The results of `contact_step` from known gaps and rows; `state` is q, v, tau and h."""
    (q, v, tau, time_step), (contact, stabilization, planes, _) = state, surroundings
    scene = kinematics.scene
    parts = components(scene.mechanism, q)
    inputs = row_inputs(scene, time_step, contact.compliance, contact.restitution, stabilization)
    bounds = np.array(scene.friction_bounds) * time_step if scene.friction_bounds else None
    cones = ConeInputs(contact.friction, contact.torsional, contact.rolling, bounds, *solver)
    setup = StepSetup(Forces(tau), inputs, cones, options._replace(impacts=STEP.impacts), parts)
    system = assemble(kinematics, v, setup)
    solution, fraction = solve_with_restitution(
        scene, system, lambda b: solve_contact_law(scene, system, system.after + b, setup)
    )
    impulse, residual, count, status = solution
    values, after = system.values, system.velocity + system.response.respond(impulse)
    sigma = system.G @ impulse + (
        system.after + values.bias_with_restitution(None if values.impact_points is None else fraction)
    )
    if values.yields:
        sigma = sigma + values.compliance * impulse
    q_end, v_end, _ = integrate_velocity(scene.model, parts, q, after, time_step)
    gap = kinematics.gap
    status = flag_not_finite(status, gap, contact.restitution, contact.compliance, stabilization, *planes)
    return q_end, v_end, impulse, sigma, residual, gap, count, status, fraction


def row_inputs(scene: Scene, h: Any, compliance: Any, restitution: Any, stabilization: Any) -> RowInputs:
    """Inputs of the stages from h, compliance and restitution (points,), and the fraction () of position errors that
    velocities correct; each None if not used."""
    C = None
    if compliance is not None:
        C = np.zeros(scene.m)
        C[list(scene.normals)] = compliance
    share = 0.0 if stabilization is None else stabilization
    return RowInputs(Blend(h), RowNumbers(C, None, restitution), Recovery(share, share))


@kernel("(nq),(nv),(nv),()->(nq),(nv)")
def advance_freely(model: Model, q: Any, v: Any, a: Any, time_step: Any) -> tuple[Floats, Floats]:
    """q⁺ (nq,) and v⁺ (nv,) after a step with accelerations v̇ (nv,) in the axes of the bodies."""
    parts, after = components(Mechanism(model, ()), q), v + time_step * (a - turning(model, v))
    for link, _, j in free_bodies(model, parts):
        after[j] = v[j] + time_step * kick_acceleration(link, v[j], a[j])
    q_end, v_end, _ = integrate_velocity(model, parts, q, after, time_step)
    return q_end, v_end
