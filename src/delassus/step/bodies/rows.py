"""The rows of contacts between free bodies, without a matrix: what they read of velocities, and how impulses push.

A contact at the point x has the axes A = (t1, t2, n) and the arms r = x - c from the centres of mass of its bodies:

    u = Aᵀ (v₁ + ω₁ × r₁ - v₂ - ω₂ × r₂)            its velocity
    v₁ += A λ/m₁,  ω₁ += B₁ λ,  v₂ -= A λ/m₂,  ω₂ -= B₂ λ,      B = I⁻¹ [r]× A

so that a pass over all contacts takes some hundred operations each, whatever the number of bodies.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import map as map_items
from delassus.compiler.tracing.flow.control import scan
from delassus.contact.cones.tangents import contact_axes
from delassus.contact.systems.sweep import steps_of
from delassus.step.bodies.collide import Slots
from delassus.step.bodies.motion import Poses


class ContactRows(NamedTuple):
    """Contacts (slots, …), or one of them.

    Attributes:
        first: The first body.
        second: The second one.
        axes: (slots, 3, 3) t1, t2, n as columns.
        arm1: (slots, 3) from the first centre of mass [m].
        arm2: (slots, 3) from the second one.
        turn1: (slots, 3, 3) B₁.
        turn2: (slots, 3, 3) B₂.
        inverse1: 1/m₁ [1/kg].
        inverse2: 1/m₂.
        across: (slots, 2) what a normal impulse does to the velocities of the tangents.
        normal_step: The normal impulse that changes the velocity along the normal by one [kg].
        tangent_step: The same along the tangents, or less.
        tangent_response: The larger response of a tangent to its own impulse [1/kg].
    """

    first: Any
    second: Any
    axes: Any
    arm1: Any
    arm2: Any
    turn1: Any
    turn2: Any
    inverse1: Any
    inverse2: Any
    across: Any
    normal_step: Any
    tangent_step: Any
    tangent_response: Any


def contact_rows(poses: Poses, slots: Slots) -> ContactRows:
    """The rows of contacts; those of slots without one do nothing."""

    def row(active: Any, point: Any, normal: Any, first: Any, second: Any) -> tuple[Any, ...]:
        axes = contact_axes(normal)
        arms, turns, inverses = [], [], []
        G = np.zeros((3, 3))
        for body in (first, second):
            arm = point - np.take(poses.com, body, axis=0)
            inertia = np.take(poses.inverse_inertia, body, axis=0)
            about = np.stack([np.cross(arm, axes[:, k]) for k in range(3)], axis=1)
            turn = active * (inertia @ about)
            inverse = active * np.take(poses.inverse_mass, body)
            G = G + inverse * np.eye(3) + about.T @ turn
            arms, turns, inverses = [*arms, arm], [*turns, turn], [*inverses, inverse]
        steps = steps_of(G)
        own = np.maximum(G[0, 0], G[1, 1])
        return active * axes, *arms, *turns, *inverses, G[:2, 2], steps.normal, steps.tangents, own

    rest = map_items(row, slots.active, slots.point, slots.normal, slots.first, slots.second)
    return ContactRows(slots.first, slots.second, *rest)


def read(row: ContactRows, velocity: Any) -> Any:
    """u (3,) of one contact, of velocities (bodies + 1, 6)."""
    one, two = np.take(velocity, row.first, axis=0), np.take(velocity, row.second, axis=0)
    return row.axes.T @ (one[:3] + np.cross(one[3:], row.arm1) - two[:3] - np.cross(two[3:], row.arm2))


def push(row: ContactRows, velocity: Any, impulse: Any) -> Any:
    """Velocities (bodies + 1, 6) after an impulse (3,) of one contact."""
    f = row.axes @ impulse
    one = np.concatenate([row.inverse1 * f, row.turn1 @ impulse])
    two = np.concatenate([row.inverse2 * f, row.turn2 @ impulse])
    return np.add_at(np.add_at(velocity, row.first, one), row.second, -two)


def read_all(rows: ContactRows, velocity: Any) -> Any:
    """u (slots, 3) of all contacts."""
    return map_items(lambda *row: read(ContactRows(*row), velocity), *rows)


def push_all(rows: ContactRows, velocity: Any, impulse: Any) -> Any:
    """Velocities (bodies + 1, 6) after impulses (slots, 3)."""

    def body(velocity: Any, item: Any) -> tuple[Any, None]:
        row, impulse = item
        return push(row, velocity, impulse), None

    return scan(body, velocity, (rows, impulse))[0]
