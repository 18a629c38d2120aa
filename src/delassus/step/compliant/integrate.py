"""Stages 6 and 7 of a compliant step: the configuration and velocity at its end.

    q⁺ = q ⊕ h ((1-β) v + β v⁺ + u)

u corrects position errors, W u = Jᵀ μ, and is not added to v⁺. With stabilization "project", loops are closed by
`project`. A step solves W v⁺ = c + Jᵀ λ with the inertias and velocity products of its start or of its middle;
`scheme.energy` states the error of energy and momentum that follows, and how it is corrected.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.constrained.rows.jacobian import jacobian_in
from delassus.constrained.solvers.status import Status
from delassus.dynamics.forces.rnea import newton_euler
from delassus.dynamics.kinematics.manifold import integrate
from delassus.dynamics.mass.crba import mass_matrix
from delassus.model.links import links_of
from delassus.step.compliant.kinematics import RowKinematics
from delassus.step.compliant.response import PrescribedVelocities, free_response
from delassus.step.compliant.rows import correction_bias
from delassus.step.compliant.solve import solve_rows
from delassus.step.compliant.types import RowValues, StepSetup, VelocityStep
from delassus.step.impacts.detection import mean_velocity
from delassus.step.scheme.components import Component
from delassus.step.scheme.energy import Kick, gravity_forces
from delassus.step.scheme.manifold_step import fly_all, integrate_velocity, turning, without_flight
from delassus.step.scheme.response import Response
from delassus.step.scheme.restoration import (
    Allowances,
    PartContact,
    is_articulated,
    part_allowances,
    shared_excess,
)
from delassus.step.scheme.world_contact import is_alone, is_grounded
from delassus.step.stages.correction import Correction, correct_positions, limited_bias


class StepEnd(NamedTuple):
    """q⁺ (nq,), v⁺ (nv,) in the body axes at q⁺, and the status of the position correction."""

    q: Any
    v: Any
    status: Any


def move(state: RowKinematics, q: Any, before: Any, step: VelocityStep, setup: StepSetup) -> StepEnd:
    """The state after a step from q (nq,) with the velocity `before` (nv,); "pre" also corrects positions.

    In a midpoint step, free bodies move freely to the middle, where impulses change their velocity, and then to the
    end.
    """
    (_, inputs, _, options, parts), model, blend = setup, state.mechanism.model, setup.inputs.blend
    mean, status = blend.velocity(before, step.v), np.array(float(Status.CONVERGED))
    if step.impact_points is not None:
        mean = mean_velocity(step.impact_points, blend, before, step.free_velocity - before, step.v)
    if step.system is not None and options.stabilization == "pre":
        u, status = _correct_errors(state, step.response, step.system.A, step.system.values, setup)
        mean = mean + u
    if options.midpoint:
        end = integrate(model, q, blend.h * mean), step.v
        shift = blend.h * (mean - 0.5 * (before + step.v))
        return StepEnd(*fly_all(model, parts, (state.motions.q, step.v), 0.5 * blend.h, end, shift), status)
    q, v, _ = integrate_velocity(model, parts, q, step.v, blend.h, blend.h * mean)
    for k in options.driven:
        v[k] = inputs.driven_velocity[k]
    return StepEnd(q, v, status)


def correct_end(state: RowKinematics, end: StepEnd, values: RowValues, setup: StepSetup) -> StepEnd:
    """The end of a step with its position errors corrected by a displacement; `state` has the rows at the end."""
    forces, inputs, _, options, _ = setup
    model, h, driven = (
        state.mechanism.model,
        inputs.blend.h,
        PrescribedVelocities(options.driven, inputs.driven_velocity),
    )
    _, response = free_response(state.motions, state.rows, end.v, forces, h, driven)
    u, status = _correct_errors(state, response, values.add_coupling(response.delassus()), values, setup)
    if options.midpoint:
        return StepEnd(integrate(model, end.q, h * u), end.v, status)
    q, v, _ = integrate_velocity(model, (), end.q, end.v, 0.0, h * u)
    return StepEnd(q, v, status)


def _correct_errors(
    state: RowKinematics, response: Response, A: Any, values: RowValues, setup: StepSetup
) -> Correction:
    """The correction phase: W u = Jᵀ μ, J u + R μ + b = 0 without friction, with the R of the dynamics."""
    _, inputs, cones, options, _ = setup
    scene, b = state.scene, limited_bias(state.scene, correction_bias(state, inputs, options))
    accuracy = state.accuracy(options.elastic, inputs.blend.h, state.place.v, b)

    def solve(demand: Any) -> tuple[Any, Any]:
        solution = solve_rows(scene, A, -demand, values.compliance, accuracy, cones.frictionless)
        return solution.impulse, solution.status

    return correct_positions(response, -b, solve)


def step_allowances(state: RowKinematics, v: Any, step: VelocityStep, setup: StepSetup) -> Allowances:
    """The allowed energy and momentum of articulated parts after a step from v (nv,).

    Contacts with a compliance may return the energy that they have stored.
    """
    forces, inputs, _, _, parts = setup
    articulated = [part for part in parts if is_articulated(part)]
    if not articulated:
        return []
    model, (q, there), h = state.mechanism.model, (state.place.q, state.motions.q), inputs.blend.h
    M, change = mass_matrix(model, q), step.v - v
    kick = h * (forces.force + gravity_forces(model, there, mass_matrix(model, there), parts))
    kick = kick if forces.added is None else kick - forces.added * change
    kick = kick if forces.coupling is None else kick - forces.coupling @ change
    moving = without_flight(parts, v)
    products = h * (newton_euler(model, q, moving, turning(model, moving)) + gravity_forces(model, q, M, parts))
    external = np.array(kick)
    excess, grounded = [np.array(0.0)] * len(parts), [np.array(False)] * len(articulated)
    if step.solution is not None:
        impulse = step.solution.impulse
        J, contacts = np.array(jacobian_in(state.rows, state.motions)), np.array(impulse)
        contacts[state.scene.bilateral] = 0.0
        kick = kick + J.T @ impulse
        if inputs.numbers.compliance is None:  # an impact may occur before or after the forces act
            excess = shared_excess(parts, J.T @ contacts, step.v, [v, step.free_velocity])
        tree = links_of(model)
        grounded = [is_grounded(state.scene, tree, part, impulse, _touches_world(state, part)) for part in articulated]
        alone = is_alone(state.scene, parts, impulse)
        for part, on in zip(articulated, grounded, strict=True):
            bases = [tree.links[root].v + k for root in part.roots for k in range(6)] if part.floating else []
            external[bases] = np.where(~on & alone, external[bases], kick[bases])
    gained = [more for part, more in zip(parts, excess, strict=True) if is_articulated(part)]
    touched = [PartContact(*both) for both in zip(gained, grounded, strict=True)]
    middle = None if state.motions is state.place else there
    return part_allowances(model, q, M, Kick(v, step.v, products, step.v, kick, external), parts, touched, h, middle)


def _touches_world(state: RowKinematics, part: Component) -> list[bool]:
    """Whether each contact is one of a part with the world."""
    model, tree = state.mechanism.model, links_of(state.mechanism.model)
    links = [spot.links(model) for spot in state.scene.contact_points]
    return [len(own) == 1 and tree.path(own[0])[0] in part.roots for own in links]
