"""The stages of a compliant step (see `types`); `stages.pipeline` has those of a simulation.

    kinematics → forces → assemble → solve → integrate → close loops

The rigid and soft steps of `contact_dynamics` are composed of the same stages, with α = β = 1 and impacts at the start
of the step. Their contact laws use the rows without a filter for redundant ones (`solve_contact_law`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.constrained.solvers.status import Status
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.contact.solvers.sequential_impulses import RowsOnVelocities
from delassus.contact.solvers.solve import solve_contacts
from delassus.contact.solvers.solve_pyramids import solve_pyramids
from delassus.dynamics.kinematics.manifold import integrate
from delassus.step.compliant.assemble import assemble, form_system
from delassus.step.compliant.inputs import FORMED
from delassus.step.compliant.integrate import correct_end, move, step_allowances
from delassus.step.compliant.kinematics import RowKinematics
from delassus.step.compliant.response import PrescribedVelocities, free_response
from delassus.step.compliant.solve import FilteredRows, filter_rows, measure_residual, solve_rows
from delassus.step.compliant.system import System, solve_system
from delassus.step.compliant.types import RowSolution, RowSystem, StepSetup, VelocityStep
from delassus.step.impacts.dissipation import solve_without_gain
from delassus.step.scene import Scene
from delassus.step.scheme.manifold_step import fly_all, without_flight
from delassus.step.scheme.restoration import restore_parts
from delassus.step.stages.close_loops import project_loops
from delassus.step.stages.types import StepState


class CompliantStages(NamedTuple):
    """The results of the stages of a step: the rows at its start or in its middle, the velocities that solve its
    system, q⁺ (nq,), v⁺ (nv,), and the status of the position correction."""

    kinematics: RowKinematics
    step: VelocityStep
    q: Any
    v: Any
    correction_status: Any


def run_stages(scene: Scene, mechanism: Mechanism, state: StepState, setup: StepSetup) -> CompliantStages:
    """Run the stages of one step; the mechanism is that of the scene with its planes."""
    q, v, options, h = state.q, state.v, setup.options, setup.inputs.blend.h
    kinematics = RowKinematics.of(scene, mechanism, q, v, state.time)
    step, before = velocity_step(kinematics, v, setup), v
    if options.midpoint:
        kinematics, before = _move_to_middle(kinematics, step, setup)
        step = velocity_step(kinematics, before, setup)
    end, later = move(kinematics, q, before, step, setup), None if state.time is None else state.time + h
    if step.system is not None and options.stabilization == "post":
        there = RowKinematics.of(scene, mechanism, end.q, end.v, later)
        end = correct_end(there, end, step.system.values, setup)
    q_end, v_end, status = end
    if options.stabilization == "project":
        q_end, v_end = project_loops(scene, q_end, v_end, later, options.elastic, options.driven)
    allowances = step_allowances(kinematics, v, step, setup)
    q_end, v_end = restore_parts(mechanism.model, q_end, v_end, allowances)
    return CompliantStages(kinematics, step, q_end, v_end, status)


def _move_to_middle(state: RowKinematics, step: VelocityStep, setup: StepSetup) -> tuple[RowKinematics, Any]:
    """The rows in the middle of a step, and the initial velocity (nv,) of the step in the body axes there."""
    model, parts, h, q, v = state.mechanism.model, setup.parts, setup.inputs.blend.h, state.place.q, state.place.v
    mean = 0.5 * (v + step.v)
    middle = integrate(model, q, 0.5 * h * mean)
    middle, before = fly_all(model, parts, (q, v), 0.5 * h, (middle, v))
    return state.at_state(middle, without_flight(parts, mean), before), before


def velocity_step(state: RowKinematics, v: Any, setup: StepSetup) -> VelocityStep:
    """Stages 4 and 5: the velocity step from v (nv,), with the inertias and rows of `state`."""
    scene, (forces, inputs, cones, options, parts), h = state.scene, setup, setup.inputs.blend.h
    if not scene.m:
        driven = PrescribedVelocities(options.driven, inputs.driven_velocity)
        free, response = free_response(state.motions, state.rows, v, forces, h, driven, options.straight, parts)
        return VelocityStep(free, free, response, None, None, np.array(1.0))
    system = assemble(state, v, setup)
    accuracy = state.accuracy(options.elastic, h, system.velocity)

    def solve(b: Any) -> RowSolution:
        g, R = system.after + b, system.values.compliance
        if options.method not in FORMED:
            return solve_rows(scene, system.A, g, R, accuracy, cones, options.method)
        rows = filter_rows(scene, system.A, g, R, accuracy)
        values = system.values._replace(bias=rows.g - system.after, compliance=rows.R)
        return _solve_formed(scene, system, form_system(state, v, values, setup), rows, g, setup)

    solution, fraction = solve_with_restitution(scene, system, solve)
    after = system.velocity + system.response.respond(solution.impulse)
    impact = system.reflections
    if impact is not None:
        status = np.where(impact.status != float(Status.CONVERGED), impact.status, solution.status)
        solution = solution._replace(impulse=solution.impulse + impact.impulse, status=status)
    return VelocityStep(after, system.free_velocity, system.response, system, solution, fraction)


def solve_with_restitution(scene: Scene, system: RowSystem, solve: Any) -> tuple[RowSolution, Any]:
    """The solution with the largest restitution that adds no energy, and its fraction; `solve` takes b (m,)."""
    values = system.values
    if values.impact_points is None:
        return solve(values.bias), np.array(1.0)
    nothing = RowSolution(np.zeros(scene.m), np.zeros(scene.m), np.array(0.0), np.array(0.0))
    solution, fraction = solve_without_gain(
        lambda b, _: solve(b),
        lambda impulse: system.G @ impulse,
        system.meeting_velocity,
        values.impact_points.any,
        values.bias,
        values.plastic_bias,
        nothing,
    )
    return solution, fraction


def solve_contact_law(scene: Scene, system: RowSystem, g: Any, setup: StepSetup) -> RowSolution:
    """Impulses that satisfy a contact law, for the unfiltered rows g = J v_f + b (m,)."""
    cones, options = setup.cones, setup.options
    layout, G, method = scene.layout, system.G, options.method
    rows = cones.rows._replace(compliance=system.values.compliance if system.values.yields else None)
    if options.law == "lcp":
        solver = cones.solver._replace(start=None)  # pivoting takes no warm start
        faces, pyramid = options.faces, options.pyramid
        result = solve_pyramids(layout, G, g, rows=rows, solver=solver, method=method, faces=faces, pyramid=pyramid)
    else:
        result = solve_contacts(layout, G, g, rows=rows, solver=cones.solver, method=method, law=options.law)
    impulse, _, residual, count, status = result
    return RowSolution(impulse, residual, count, status)


def _solve_formed(
    scene: Scene, system: RowSystem, formed: System, rows: FilteredRows, g: Any, setup: StepSetup
) -> RowSolution:
    """The solution of the formed system of filtered rows; g (m,) is that of the unfiltered rows."""
    _, inputs, cones, options, _ = setup
    formed, impact = formed.driven(options.driven, inputs.driven_velocity), system.reflections
    if impact is not None:
        formed = formed._replace(c=formed.c + formed.W @ impact.change)
    layout = RowsOnVelocities(scene.layout.cones, scene.nv)
    solution = RowSolution(*solve_system(layout, formed, cones, options.method)[1:])
    contradict = np.array(False) if rows.contradict is None else rows.contradict
    return measure_residual(scene, system.A, g, system.values.compliance, cones, solution, contradict)
