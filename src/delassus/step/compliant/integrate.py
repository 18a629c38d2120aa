"""Stages 6 and 7 of a compliant step: from its velocities to the configuration and the velocity at its end.

    q⁺ = q ⊕ h ((1-β) v + β v⁺ + u)

u corrects errors of position, W u = Jᵀ μ, and is no velocity. Loops are closed where `stabilization` says so. A step
solves W v⁺ = c + Jᵀ λ with inertias and velocity products of its beginning, or of its middle; `scheme.energy` says what
is lost or gained on the way to q⁺, and how it is restored.
"""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.constrained.rows.jacobian import jacobian_in
from delassus.dynamics.forces.rnea import newton_euler
from delassus.dynamics.kinematics.manifold import integrate
from delassus.dynamics.mass.crba import mass_matrix
from delassus.model.links import links_of
from delassus.step.actuators.forces import Forces
from delassus.step.compliant.kinematics import RowKinematics
from delassus.step.compliant.rows import correction_bias
from delassus.step.compliant.solve import solve_rows
from delassus.step.compliant.types import ConeInputs, RowInputs, StepOptions, VelocityStep
from delassus.step.scheme.components import Component
from delassus.step.scheme.energy import Kick, gravity_forces
from delassus.step.scheme.flying import integrate_velocity, turning, without_flight
from delassus.step.scheme.grounding import is_grounded
from delassus.step.scheme.response import Response
from delassus.step.scheme.restoration import (
    Allowances,
    PartContact,
    is_articulated,
    part_allowances,
    shared_excess,
)
from delassus.step.stages.correction import Correction, correct_positions, limited_bias


def correct_errors(
    state: RowKinematics,
    response: Response,
    A: Any,
    R: Any,
    inputs: RowInputs,
    cones: ConeInputs,
    options: StepOptions,
) -> Correction:
    """The correction phase: W u = Jᵀ μ, J u + R μ + b = 0, without friction, A (m, m) and R (m,) as in the dynamics."""
    scene, b = state.scene, limited_bias(state.scene, correction_bias(state, inputs, options))
    accuracy = state.accuracy(options.elastic, inputs.blend.h, state.place.v, b)

    def solve(demand: Any) -> tuple[Any, Any]:
        solution = solve_rows(scene, A, -demand, R, accuracy, cones.frictionless)
        return solution.impulse, solution.status

    return correct_positions(response, -b, solve)


def move(
    state: RowKinematics, q: Any, v: Any, mean: Any, inputs: RowInputs, options: StepOptions, parts: Any
) -> tuple[Any, Any]:
    """Where the velocity `mean` (nv,) leads from q (nq,) in a step, and v (nv,) in the axes that there are then."""
    model, h = state.mechanism.model, inputs.blend.h
    if not options.straight:
        return integrate(model, q, h * mean), v
    q, v, _ = integrate_velocity(model, parts, q, v, h, h * mean)
    for k in options.driven:
        v[k] = inputs.driven_velocity[k]
    return q, v


def displace(state: RowKinematics, q: Any, v: Any, u: Any, inputs: RowInputs, options: StepOptions) -> tuple[Any, Any]:
    """Configuration (nq,) and velocity (nv,) after a displacement h u (nv,) that takes no time."""
    model, h = state.mechanism.model, inputs.blend.h
    if not options.straight:
        return integrate(model, q, h * u), v
    return integrate_velocity(model, (), q, v, 0.0, h * u)[:2]


def step_allowances(
    state: RowKinematics,
    parts: tuple[Component, ...],
    v: Any,
    step: VelocityStep,
    forces: Forces,
    inputs: RowInputs,
) -> Allowances:
    """The energy and momentum that articulated parts may have after a step from v (nv,).

    Contacts with a compliance give back what they have stored.
    """
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
    excess, grounded = [np.array(0.0)] * len(parts), [np.array(False)] * len(articulated)
    if step.solution is not None:
        impulse = step.solution.impulse
        J, contacts = np.array(jacobian_in(state.rows, state.motions)), np.array(impulse)
        contacts[state.scene.bilateral] = 0.0
        kick = kick + J.T @ impulse
        if inputs.numbers.compliance is None:  # a contact may strike before the forces of the step have acted, or after
            excess = shared_excess(parts, J.T @ contacts, step.v, [v, step.free_velocity])
        tree = links_of(model)
        grounded = [is_grounded(state.scene, tree, part, impulse, _touches_world(state, part)) for part in articulated]
    gained = [more for part, more in zip(parts, excess, strict=True) if is_articulated(part)]
    touched = [PartContact(*both) for both in zip(gained, grounded, strict=True)]
    middle = None if state.motions is state.place else there
    return part_allowances(model, q, M, Kick(v, step.v, products, step.v, kick), parts, touched, h, middle)


def _touches_world(state: RowKinematics, part: Component) -> list[bool]:
    """Which contacts are those of a part with the world."""
    model, tree = state.mechanism.model, links_of(state.mechanism.model)
    links = [spot.links(model) for spot in state.scene.spots]
    return [len(own) == 1 and tree.path(own[0])[0] in part.roots for own in links]
