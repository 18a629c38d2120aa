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
from delassus.step.scheme.energy import Kick, gravity_forces
from delassus.step.scheme.flying import turning, without_flight
from delassus.step.scheme.grounding import is_grounded
from delassus.step.scheme.restoration import PartContact, is_articulated, part_allowances, restore_parts, shared_excess


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
    articulated = [part for part in parts if is_articulated(part)]
    if not articulated:
        return end
    model, (q, there), (v, free, after) = state.mechanism.model, (state.place.q, state.motions.q), velocities
    M, change = mass_matrix(model, q), after - v
    kick = h * (acting.push + gravity_forces(model, there, mass_matrix(model, there), parts))
    kick = kick if acting.added is None else kick - acting.added * change
    kick = kick if acting.more is None else kick - acting.more @ change
    moving = without_flight(parts, v)
    products = h * (newton_euler(model, q, moving, turning(model, moving)) + gravity_forces(model, q, M, parts))
    excess, grounded = [np.array(0.0)] * len(parts), [np.array(False)] * len(articulated)
    if impulse is not None:
        J, contacts = np.array(jacobian_in(state.rows, state.motions)), np.array(impulse)
        contacts[state.scene.bilateral] = 0.0
        kick = kick + J.T @ impulse
        if not elastic:  # a contact may strike before the forces of the step have acted, or after that
            excess = shared_excess(parts, J.T @ contacts, after, [v, free])
        tree = links_of(model)
        grounded = [is_grounded(state.scene, tree, part, impulse, _touches_world(state, part)) for part in articulated]
    gained = [more for part, more in zip(parts, excess, strict=True) if is_articulated(part)]
    touched = [PartContact(*both) for both in zip(gained, grounded, strict=True)]
    middle = None if state.motions is state.place else there
    allowances = part_allowances(model, q, M, Kick(v, after, products, after, kick), parts, touched, h, middle)
    return restore_parts(model, *end, allowances)


def _touches_world(state: State, part: Component) -> list[bool]:
    """Which contacts are those of a part with the world."""
    model, tree = state.mechanism.model, links_of(state.mechanism.model)
    links = [spot.links(model) for spot in state.scene.spots]
    return [len(own) == 1 and tree.path(own[0])[0] in part.roots for own in links]
