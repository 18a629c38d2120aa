"""Stage 4 of a compliant step: assembles the system of its impulses.

    W v⁺ = c + Jᵀ λ,      J v⁺ + R λ + b = 0  (or complementary)

Without impulses the velocity is v_f = W⁻¹ c, and row velocities are J v_f. An impact by reflections takes no time: it
is applied before the step, with M in place of W, and the step starts from the velocities after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import delassus.numpy as np
from delassus.constrained.rows.jacobian import jacobian_in
from delassus.constrained.solvers.status import Status
from delassus.constraints.basis.motions import LinkMotions
from delassus.dynamics.forces.rnea import newton_euler
from delassus.step.actuators.forces import Forces
from delassus.step.compliant.kinematics import RowKinematics
from delassus.step.compliant.response import (
    PrescribedVelocities,
    free_response,
    motions_without_flight,
    response_matrix,
    turning_of,
)
from delassus.step.compliant.rows import dynamics_values
from delassus.step.compliant.system import System
from delassus.step.compliant.types import Reflections, RowSystem, RowValues, StepSetup
from delassus.step.impacts.detection import detect_impacts, touching_points
from delassus.step.impacts.reflection_rounds import constrained_response, reflect
from delassus.step.scheme.blend import Blend
from delassus.step.scheme.components import Component
from delassus.step.scheme.response import Response


def assemble(state: RowKinematics, v: Any, setup: StepSetup) -> RowSystem:
    """Assemble the system of a step that starts with velocities v (nv,), with the inertias and rows of `state`."""
    forces, inputs, _, options, parts = setup
    blend, restitution = inputs.blend, inputs.numbers.restitution
    driven = PrescribedVelocities(options.driven, inputs.driven_velocity)
    free, response = free_response(state.motions, state.rows, v, forces, blend.h, driven, options.straight, parts)
    G, after, velocity, reflections = response.delassus(), state.velocities(free), free, None
    if options.impacts == "reflections" and restitution is not None:
        bare, bare_G = response, G
        if forces.added is not None or forces.coupling is not None:
            push, rows = Forces(forces.force), state.rows
            _, bare = free_response(state.motions, rows, v, push, blend.h, driven, options.straight, parts)
            bare_G = bare.delassus()
        reflections = apply_reflections(state, bare, bare_G, blend, after, restitution)
        velocity, jump = free + reflections.change, state.velocities(reflections.change)
        state, after = state._replace(rate=state.rate + jump), after + jump
    values = dynamics_values(state, inputs, options, after if reflections is None else None)
    meeting = None
    if values.impact_points is not None and options.impacts == "start":
        meeting = 0.5 * (state.velocities(_coasting_velocity(state, v, blend.h, parts)) + after)
    elif values.impact_points is not None:
        meeting = state.rate + (values.impact_points.share + blend.beta - 0.5) * (after - state.rate)
    return RowSystem(response, free, velocity, after, G, values, meeting, reflections)


def _coasting_velocity(state: RowKinematics, v: Any, h: Any, parts: Sequence[Component]) -> Any:
    """The velocity v_c = v - h M⁻¹ c (nv,) after a step without forces, which conserves energy.

    Forces and impulses then change the velocity by v⁺ - v_c, and the work of impulses is λᵀ ½ J (v_c + v⁺), that is
    λᵀ (u + ½ G λ) with u = ½ J (v_c + v_f).
    """
    model = state.mechanism.model.with_gravity((0.0, 0.0, 0.0))
    motions = LinkMotions.of(model, state.place.q, v, state.place.time)
    return free_response(motions, state.rows, v, Forces(np.zeros(model.nv)), h, straight=True, parts=parts)[0]


def apply_reflections(
    state: RowKinematics, response: Response, G: Any, blend: Blend, after: Any, restitution: Any
) -> Reflections:
    """Apply impacts by reflections, with M in place of W.

    G (m, m) and the response are those of M; `after` (m,) are row velocities after the step without impulses.
    """
    scene, normals = state.scene, list(state.scene.normals)
    before, after = state.rate[normals], after[normals]
    result = detect_impacts(state.motions.model, blend, state.gap, before, after, restitution)
    on = touching_points(result, blend, state.gap, before, after)
    ahead = (result.share + blend.beta - 0.5) * (after - before)
    ties = list(range(scene.m)[scene.bilateral])
    inner, reaction = constrained_response(G, normals, ties)
    rounds = reflect(inner, before + ahead, on, restitution)
    impulse = np.zeros(scene.m)
    impulse[normals] = rounds.impulse
    if reaction is not None:
        impulse[ties] = reaction @ rounds.impulse
    status = np.where(rounds.settled, float(Status.CONVERGED), float(Status.ITERATIONS))
    return Reflections(result, response.respond(impulse), impulse, status)


def form_system(state: RowKinematics, v: Any, values: RowValues, setup: StepSetup) -> System:
    """The system of a step as matrices, with the unknown v⁺; if the step is straight, v⁺ is in the body axes at its
    start."""
    forces, parts, h, straight = setup.forces, setup.parts, setup.inputs.blend.h, setup.options.straight
    motions = motions_without_flight(state.motions, parts)
    W = response_matrix(motions, forces)
    bias = newton_euler(motions.model, motions.q, motions.v, turning_of(motions) if straight else np.zeros(len(v)))
    c = W @ v + h * (forces.force - bias)
    return System(W, c, jacobian_in(state.rows, motions), values.compliance, values.bias, values.coupling)
