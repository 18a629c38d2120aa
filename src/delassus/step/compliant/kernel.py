"""The kernels of the compliant scheme: a step, and the matrices of its system.

    W v⁺ = c + Jᵀ λ,      J v⁺ + R λ + b = 0  (or complementary),      q⁺ = q ⊕ h ((1-β) v + β v⁺),

W = M + h α D + h² α β K and c = W v + h (τ - bias + f - α h K v) as in `forces`, R and b as in `scheme`. Springs and
dampers of joints, and servos, are in W at no cost; rows are in its Schur complement. Its parts inline into other
kernels.

Reference: M. Tournier, Compliant reference (2014).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.host.inputs import Bundle
from delassus.compiler.host.kernel import kernel
from delassus.constrained.solvers.status import Status
from delassus.step.compliant.assemble import form_system
from delassus.step.compliant.forces import compliant_forces
from delassus.step.compliant.inputs import FORM_NUMBERS, NO_NUMBERS, NUMBERS, StepNumbers
from delassus.step.compliant.kinematics import RowKinematics
from delassus.step.compliant.pipeline import CompliantStages, run_stages
from delassus.step.compliant.response import PrescribedVelocities, free_response
from delassus.step.compliant.rows import correction_bias, dynamics_values
from delassus.step.compliant.system import System
from delassus.step.compliant.types import ConeInputs, Recovery, RowInputs, RowNumbers, StepOptions, StepSetup
from delassus.step.scene import Scene
from delassus.step.scheme.blend import Blend
from delassus.step.scheme.components import components, undriven
from delassus.step.stages.types import StepState


class CompliantResult(NamedTuple):
    """A step: q⁺, v⁺, impulses (m,), what rows leave (m,), gaps as it begins, iterations, the number of a `Status`, the
    share of restitution that added no energy, and the velocity (nv,) that solves the system of the step."""

    q: Any
    v: Any
    impulse: Any
    residual: Any
    gap: Any
    iterations: Any
    status: Any
    restitution_share: Any
    system_velocity: Any


OPTIONS: Final = Bundle(StepOptions, "elastic", "driven", "coupled", "stabilization", "midpoint", "impacts", "method")
FORM_OPTIONS: Final = Bundle(StepOptions, "elastic", "driven", "coupled", "stabilization")
DEFAULTS: Final = StepOptions()


@kernel(
    "(nq),(nv),(nv),()->(nq),(nv),(m),(m),(points),(),(),(),(nv)",
    inputs={"numbers": NUMBERS, "options": OPTIONS},
    result=CompliantResult,
)
def compliant_kernel(
    scene: Scene,
    q: Any,
    v: Any,
    tau: Any,
    time_step: Any,
    *,
    numbers: StepNumbers = NO_NUMBERS,
    options: StepOptions = DEFAULTS,
) -> CompliantResult:
    """A step of the compliant scheme, without checks; with `outputs=` it can be specialized for any set of rows.

    Args:
        scene: The scene of a result of `compliant_step`: `step.scene`.
        q: Configurations (…, nq) [rad, m].
        v: Velocities (…, nv) [rad/s, m/s].
        tau: Generalized forces (…, nv) [N·m, N].
        time_step: (…) h [s].
        numbers: What it takes at run time; its fields are keywords, too: scheme, springs, servo, driven_velocity,
            contact, planes, time, solver.
        options: What is compiled in; its fields are keywords, too: elastic, driven, coupled, stabilization, midpoint,
            impacts, method.

    >>> robot, zero = dl.load("pendulum"), np.zeros(1)
    >>> step = dl.stepping.compliant_step(robot, [1.0], zero, zero, time_step=1e-3)
    >>> result = dl.stepping.compliant_kernel(step.scene, np.array([1.0]), zero, zero, 1e-3)
    >>> np.allclose(result.q, step.q)
    True
    """
    scheme, springs, servo, _, contact, planes, time, solver = numbers
    mechanism = scene.on_planes(*planes)
    inputs = _row_inputs(time_step, numbers, options)
    bounds = np.array(scene.friction_bounds) * time_step if scene.friction_bounds else None
    cones = ConeInputs(contact.friction, contact.torsional, contact.rolling, bounds, *solver)
    forces = compliant_forces(mechanism, q, v, tau, inputs.blend, servo, springs.geometric, time)
    setup = StepSetup(forces, inputs, cones, options, undriven(components(scene.mechanism, q), options.driven))
    stages = run_stages(scene, mechanism, StepState(q, v, solver.start, None, time, None), setup)
    after = stages.v
    for deciding in (*scheme, contact.restitution):
        if deciding is not None and not isinstance(deciding, float):  # what is compared or not used would be lost
            after = np.where(np.isfinite(np.sum(deciding)), after, np.nan)
    return _pack_result(scene, stages._replace(v=after))


@kernel(
    "(nq),(nv),(nv),()->(nv,nv),(nv),(m,nv),(m),(m),(m,m)",
    inputs={"numbers": FORM_NUMBERS, "options": FORM_OPTIONS},
    result=System,
)
def system_of_step(
    scene: Scene,
    q: Any,
    v: Any,
    tau: Any,
    time_step: Any,
    *,
    numbers: StepNumbers = NO_NUMBERS,
    options: StepOptions = DEFAULTS,
    system: tuple[str, str] = ("dynamics", "velocity"),
) -> System:
    """W, c, J, R, b, and what R has besides its diagonal, of the phase and in the form that `system` names."""
    phase, form = system
    inputs, driven = _row_inputs(time_step, numbers, options), options.driven
    h, mechanism = inputs.blend.h, scene.on_planes(*numbers.planes)
    state = RowKinematics.of(scene, mechanism, q, v, numbers.time)
    geometric, time = numbers.springs.geometric, numbers.time
    forces = compliant_forces(mechanism, q, v, tau, inputs.blend, numbers.servo, geometric, time)
    parts = undriven(components(scene.mechanism, q), driven)
    after = None
    if numbers.contact.restitution is not None:
        given = PrescribedVelocities(driven, numbers.driven_velocity)
        free, _ = free_response(state.motions, state.rows, v, forces, h, given, straight=True, parts=parts)
        after = state.velocities(free)
    values = dynamics_values(state, inputs, options, after)
    setup = StepSetup(forces, inputs, ConeInputs(), options, parts)
    formed = form_system(state, v, values, setup).driven(driven, numbers.driven_velocity)
    formed = formed._replace(coupling=values.add_coupling(np.zeros((scene.m, scene.m))))
    if phase == "correction":
        return formed._replace(c=np.zeros(scene.nv), b=correction_bias(state, inputs, options))
    return formed.to_form(form, v, h)


def _row_inputs(h: Any, numbers: StepNumbers, options: StepOptions) -> RowInputs:
    """Inputs of kernels as stages take them; a stabilized step leaves errors of position to its correction phase."""
    springs, restitution = numbers.springs, numbers.contact.restitution
    of_rows = RowNumbers(springs.compliance, springs.damping, restitution, springs.compliance_matrix)
    recovery = Recovery(0.0 if options.stabilization in ("pre", "post") else 1.0)
    return RowInputs(Blend(h, *numbers.scheme), of_rows, recovery, numbers.driven_velocity)


def _pack_result(scene: Scene, stages: CompliantStages) -> CompliantResult:
    """The result of a step."""
    q, v, step, solution = stages.q, stages.v, stages.step, stages.step.solution
    finite, fraction = np.isfinite(np.sum(q) + np.sum(v)), step.restitution_fraction
    if solution is None:
        status = np.where(finite, float(Status.CONVERGED), float(Status.NOT_FINITE))
        none = np.zeros(0)
        return CompliantResult(q, v, none, none, np.zeros(scene.points), np.array(0.0), status, fraction, step.v)
    impulse, residual, iterations, status = solution
    status = np.where(status != float(Status.CONVERGED), status, stages.correction_status)
    status = np.where(finite, status, float(Status.NOT_FINITE))
    return CompliantResult(q, v, impulse, residual, stages.kinematics.gap, iterations, status, fraction, step.v)
