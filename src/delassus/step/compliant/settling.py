"""The velocities of articulated robots at the end of a step, put to the energy and momentum that its impulses allow.

A step solves W v⁺ = c + Jᵀ λ with inertias and velocity products of its beginning, or of its middle; `scheme.energy`
says what is lost or gained on the way to q⁺, and how it is restored.
"""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.constrained.rows.jacobian import jacobian_in
from delassus.dynamics.forces.rnea import newton_euler
from delassus.dynamics.mass.crba import mass_matrix
from delassus.model.links import links_of
from delassus.step.compliant.acting import Acting
from delassus.step.compliant.values import State
from delassus.step.scheme.components import Component
from delassus.step.scheme.energy import Kick, allowance_of, contact_excess, gravity_forces, restore
from delassus.step.scheme.flying import turning, without_flight
from delassus.step.scheme.grounding import is_pulled_by_world


def settle(
    state: State,
    parts: tuple[Component, ...],
    velocities: tuple[Any, Any, Any],
    acting: Acting,
    impulse: Any,
    h: Any,
    end: tuple[Any, Any],
    elastic: bool,
) -> tuple[Any, Any]:
    """Configuration (nq,) and velocity (nv,) at the `end` of a step, restored.

    Args:
        state: Where the step begins, with the inertias and rows that it was made with: of there, or of its middle.
        parts: What moves on its own, and is not driven.
        velocities: (nv,) before the step, after it without impulses of rows, and after it.
        acting: Forces of the step, and what resists it besides inertia.
        impulse: (m,) of all rows, None without rows.
        h: [s].
        end: Configuration and velocity that the step has led to.
        elastic: Whether contacts give back what they have stored.
    """
    if all(part.rigid or part.driven for part in parts):
        return end
    model, (q, there), (v, free, after) = state.mechanism.model, (state.place.q, state.motions.q), velocities
    M, change = mass_matrix(model, q), after - v
    kick = h * (acting.push + gravity_forces(model, there, mass_matrix(model, there), parts))
    kick = kick if acting.added is None else kick - acting.added * change
    kick = kick if acting.more is None else kick - acting.more @ change
    moving = without_flight(parts, v)
    products = h * (newton_euler(model, q, moving, turning(model, moving)) + gravity_forces(model, q, M, parts))
    excess = [np.array(0.0)] * len(parts)
    if impulse is not None:
        J, contacts = np.array(jacobian_in(state.rows, state.motions)), np.array(impulse)
        contacts[state.scene.bilateral] = 0.0
        kick = kick + J.T @ impulse
        if not elastic:  # a contact may strike before the forces of the step have acted, or after that
            push = J.T @ contacts
            early, late = contact_excess(parts, push, v + after), contact_excess(parts, push, free + after)
            excess = [np.minimum(one, other) for one, other in zip(early, late, strict=True)]
    q_end, v_end = end
    for part, more in zip(parts, excess, strict=True):
        if part.rigid or part.driven:
            continue
        middle = None if state.motions is state.place else there
        target = allowance_of(model, q, M, Kick(v, after, products, after, kick), part, more, middle=middle)
        grounded = np.array(False) if impulse is None else _is_grounded(state, part, impulse)
        q_end, v_end = restore(model, q_end, v_end, part, target._replace(grounded=grounded))
    return q_end, v_end


def _is_grounded(state: State, part: Component, impulse: Any) -> Any:
    """Whether the world pushes a part."""
    scene, tree, result = state.scene, links_of(state.mechanism.model), np.array(False)
    for spot, row in zip(scene.spots, scene.normals, strict=True):
        links = spot.links(state.mechanism.model)
        if len(links) == 1 and tree.path(links[0])[0] in part.roots:
            result = result | (impulse[row] > 0.0)
    return result | is_pulled_by_world(scene, tree, part, impulse)
