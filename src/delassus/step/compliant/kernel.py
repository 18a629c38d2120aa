"""The kernels of the compliant scheme: a step, and the system of a step that is formed.

    W v⁺ = c + Jᵀ λ,      J v⁺ + R λ + b = 0  (or complementary),      q⁺ = q ⊕ h ((1-β) v + β v⁺),

W = M + h α D + h² α β K and c = W v + h (τ - bias + f - α h K v) as in `forces`, R and b as in `scheme`. Springs and
dampers of joints, and servos, are in W at no cost; rows are in its Schur complement. Its parts inline into other
kernels.

Reference: M. Tournier, Compliant reference (2014).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.compiler.host.kernel import kernel
from delassus.constrained.solvers.status import Status
from delassus.contact.cones.parameters import ContactParameters
from delassus.step.compliant.assemble import form_system
from delassus.step.compliant.forces import Servo, compliant_forces
from delassus.step.compliant.inputs import FORM_INPUTS, INPUTS, RowSprings, Scheme
from delassus.step.compliant.kinematics import RowKinematics
from delassus.step.compliant.pipeline import CompliantStages, run_stages
from delassus.step.compliant.response import Driven, free_response
from delassus.step.compliant.rows import correction_bias, dynamics_values
from delassus.step.compliant.system import System
from delassus.step.compliant.types import ConeInputs, Recovery, RowInputs, RowNumbers, StepOptions, StepSetup
from delassus.step.laws.inputs import ContactPlanes, SolverInputs
from delassus.step.scene import Scene
from delassus.step.scheme.blend import Blend
from delassus.step.scheme.components import components, undriven
from delassus.step.stages.types import StepState


class Advanced(NamedTuple):
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


@kernel("(nq),(nv),(nv),()->(nq),(nv),(m),(m),(points),(),(),(),(nv)", inputs=INPUTS, result=Advanced)
def compliant_kernel(
    scene: Scene,
    q: Any,
    v: Any,
    tau: Any,
    time_step: Any,
    *,
    scheme: Scheme,
    springs: RowSprings,
    servo: Servo,
    driven_velocity: Any = None,
    contact: ContactParameters,
    solver: SolverInputs,
    planes: ContactPlanes,
    time: Any = None,
    elastic: tuple[int, ...] = (),
    driven: tuple[int, ...] = (),
    coupled: tuple[tuple[int, int], ...] = (),
    stabilization: str = "none",
    midpoint: bool = False,
    impacts: str = "newton",
    method: str = "auto",
) -> Advanced:
    """A step of the compliant scheme, without checks; with `outputs=` it can be specialized whatever rows there are.

    Args:
        scene: What `compliant_step` has compiled: `step.scene`.
        q: Configurations (…, nq) [rad, m].
        v: Velocities (…, nv) [rad/s, m/s].
        tau: Generalised forces (…, nv) [N·m, N].
        time_step: (…) h [s].
        scheme: α and β (…).
        springs: Of all rows of the scene, contacts first; normals of contacts have their compliance.
        servo: Stiffness (…, nv), damping (…, nv) and target (…, nq).
        driven_velocity: (…, nv) of driven joints.
        contact: Friction, torsional and rolling friction, restitution.
        solver: Where it starts, and where it ends.
        planes: What contacts touch.
        time: (…) [s].
        elastic: The elastic rows, by their numbers.
        driven: The driven velocities, by their numbers.
        coupled: The first row, and the one after the last, of constraints with a matrix.
        stabilization, midpoint, impacts, method: As for `compliant_step`.
    """
    options = StepOptions(elastic, driven, coupled, stabilization, midpoint, impacts, method=method)
    mechanism = scene.on_planes(*planes)
    inputs = _row_inputs(time_step, scheme, springs, contact, driven_velocity, stabilization in ("pre", "post"))
    bounds = np.array(scene.friction_bounds) * time_step if scene.friction_bounds else None
    cones = ConeInputs(contact.friction, contact.torsional, contact.rolling, bounds, *solver)
    forces = compliant_forces(mechanism, q, v, tau, inputs.blend, servo, springs.geometric, time)
    setup = StepSetup(forces, inputs, cones, options, undriven(components(scene.mechanism, q), driven))
    stages = run_stages(scene, mechanism, StepState(q, v, solver.start, None, time, None), setup)
    after = stages.v
    for deciding in (*scheme, contact.restitution):
        if deciding is not None and not isinstance(deciding, float):  # what is compared or not used would be lost
            after = np.where(np.isfinite(np.sum(deciding)), after, np.nan)
    return _pack_result(scene, stages._replace(v=after))


@kernel("(nq),(nv),(nv),()->(nv,nv),(nv),(m,nv),(m),(m),(m,m)", inputs=FORM_INPUTS, result=System)
def system_of_step(
    scene: Scene,
    q: Any,
    v: Any,
    tau: Any,
    time_step: Any,
    *,
    scheme: Scheme,
    springs: RowSprings,
    servo: Servo,
    driven_velocity: Any = None,
    contact: ContactParameters,
    planes: ContactPlanes,
    time: Any = None,
    elastic: tuple[int, ...] = (),
    driven: tuple[int, ...] = (),
    coupled: tuple[tuple[int, int], ...] = (),
    stabilized: bool = False,
    phase: str = "dynamics",
    form: str = "velocity",
) -> System:
    """W, c, J, R, b, and what R has besides its diagonal, of a phase of the step."""
    options = StepOptions(elastic, driven, coupled)
    inputs = _row_inputs(time_step, scheme, springs, contact, driven_velocity, stabilized)
    h, mechanism = inputs.blend.h, scene.on_planes(*planes)
    state = RowKinematics.of(scene, mechanism, q, v, time)
    forces = compliant_forces(mechanism, q, v, tau, inputs.blend, servo, springs.geometric, time)
    parts = undriven(components(scene.mechanism, q), driven)
    after = None
    if contact.restitution is not None:
        given = Driven(driven, driven_velocity)
        free, _ = free_response(state.motions, state.rows, v, forces, h, given, straight=True, parts=parts)
        after = state.velocities(free)
    values = dynamics_values(state, inputs, options, after)
    setup = StepSetup(forces, inputs, ConeInputs(), options, parts)
    system = form_system(state, v, values, setup).driven(driven, driven_velocity)
    system = system._replace(coupling=values.coupled_with(np.zeros((scene.m, scene.m))))
    if phase == "correction":
        return system._replace(c=np.zeros(scene.nv), b=correction_bias(state, inputs, options))
    return system.seen(form, v, h)


def _row_inputs(
    h: Any, scheme: Scheme, springs: RowSprings, contact: ContactParameters, driven_velocity: Any, stabilized: bool
) -> RowInputs:
    """Inputs of kernels as stages take them; a stabilized step leaves errors of position to its correction phase."""
    numbers = RowNumbers(springs.compliance, springs.damping, contact.restitution, springs.compliance_matrix)
    return RowInputs(Blend(h, *scheme), numbers, Recovery(0.0 if stabilized else 1.0), driven_velocity)


def _pack_result(scene: Scene, stages: CompliantStages) -> Advanced:
    """The result of a step."""
    q, v, step, solution = stages.q, stages.v, stages.step, stages.step.solution
    finite, fraction = np.isfinite(np.sum(q) + np.sum(v)), step.restitution_fraction
    if solution is None:
        status = np.where(finite, float(Status.CONVERGED), float(Status.NOT_FINITE))
        none = np.zeros(0)
        return Advanced(q, v, none, none, np.zeros(scene.points), np.array(0.0), status, fraction, step.v)
    impulse, residual, iterations, status = solution
    status = np.where(status != float(Status.CONVERGED), status, stages.correction_status)
    status = np.where(finite, status, float(Status.NOT_FINITE))
    return Advanced(q, v, impulse, residual, stages.kinematics.gap, iterations, status, fraction, step.v)
