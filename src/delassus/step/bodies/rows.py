"""Matrix-free rows of contacts between free bodies: velocities of rows, and responses to impulses.

A contact at the point x has the axes A = (t1, t2, n) and the arms r = x - c from the centers of mass of its bodies:

    u = Aᵀ (v₁ + ω₁ × r₁ - v₂ - ω₂ × r₂)            its velocity
    v₁ += A λ/m₁,  ω₁ += B₁ λ,  v₂ -= A λ/m₂,  ω₂ -= B₂ λ,      B = I⁻¹ [r]× A

A pass over all contacts takes about a hundred operations per contact, independent of the number of bodies.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import scan_first
from delassus.contact.cones.tangents import contact_axes
from delassus.contact.systems.sweep import ContactSteps, coulomb_move, steps_of
from delassus.step.bodies.collide import Slots
from delassus.step.bodies.motion import Poses
from delassus.step.bodies.tables import BodyTable


class ContactRows(NamedTuple):
    """Contacts (slots, …), or one of them.

    Attributes:
        first: The first body.
        second: The second body.
        axes: (slots, 3, 3) t1, t2, n as columns.
        arm1: (slots, 3) from the first center of mass [m].
        arm2: (slots, 3) from the second center of mass [m].
        turn1: (slots, 3, 3) B₁.
        turn2: (slots, 3, 3) B₂.
        inverse1: 1/m₁ [1/kg].
        inverse2: 1/m₂.
        across: (slots, 2) response of the tangential velocities to a normal impulse.
        normal_step: The normal impulse that changes the normal velocity by one [kg].
        tangent_step: The same for the tangents, or less.
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


class SweepRows(NamedTuple):
    """Contacts (slots, …) in the order of a sweep: rows, the bias b (slots, 3) of velocities, friction."""

    rows: ContactRows
    bias: Any
    friction: Any


def contact_rows(bodies: BodyTable, poses: Poses, slots: Slots, match: Any, impulse: Any) -> tuple[ContactRows, Any]:
    """The rows of contacts, and initial impulses (slots, 3): those of the previous contacts with the indices `match`
    (slots,).

    Rows of slots without a contact, in states that have fewer than others, have no effect.
    """
    inverse_mass = numpy.append(1.0 / bodies.mass, 0.0)

    def row(k: Any, item: Any) -> tuple[Any, Any]:
        _, _, point, normal, first, second = item
        active, place = np.where(k < slots.count, 1.0, 0.0), np.take(match, k)
        axes = contact_axes(normal)
        arms: list[Any] = []
        turns: list[Any] = []
        inverses: list[Any] = []
        G = np.zeros((3, 3))
        for body in (first, second):
            arm = point - np.take(poses.com, body, axis=0)
            inertia = np.take(poses.inverse_inertia, body, axis=0)
            about = np.stack([np.cross(arm, axes[:, j]) for j in range(3)], axis=1)
            turn = active * (inertia @ about)
            inverse = active * np.take(inverse_mass, body)
            G = G + inverse * np.eye(3) + about.T @ turn
            arms, turns, inverses = [*arms, arm], [*turns, turn], [*inverses, inverse]
        steps = steps_of(G)
        own = np.maximum(G[0, 0], G[1, 1])
        parts = (active * axes, *arms, *turns, *inverses, G[:2, 2], steps.normal, steps.tangents, own)
        start = np.where((place > 0.5) & (active > 0.5), np.take(impulse, place - 1.0, axis=0), 0.0)
        return k + 1.0, (ContactRows(first, second, *parts), start)

    return scan_first(slots.count, row, np.array(0.0), tuple(slots[:6]))[1]


def read(row: ContactRows, velocity: Any) -> Any:
    """u (3,) of one contact for velocities (bodies + 1, 6)."""
    one, two = np.take(velocity, row.first, axis=0), np.take(velocity, row.second, axis=0)
    return row.axes.T @ (one[:3] + np.cross(one[3:], row.arm1) - two[:3] - np.cross(two[3:], row.arm2))


def push(row: ContactRows, velocity: Any, impulse: Any) -> Any:
    """Velocities (bodies + 1, 6) after an impulse (3,) of one contact."""
    f = row.axes @ impulse
    one = np.concatenate([row.inverse1 * f, row.turn1 @ impulse])
    two = np.concatenate([row.inverse2 * f, row.turn2 @ impulse])
    return np.add_at(np.add_at(velocity, row.first, one), row.second, -two)


def push_all(count: Any, rows: ContactRows, velocity: Any, impulse: Any) -> Any:
    """Velocities (bodies + 1, 6) after impulses (slots, 3) of the first contacts."""

    def body(carry: Any, row: ContactRows) -> tuple[Any, None]:
        velocity, k = carry
        own = np.where(k < count, np.take(impulse, k, axis=0), 0.0)
        return (push(row, velocity, own), k + 1.0), None

    return scan_first(count, body, (velocity, np.array(0.0)), rows)[0][0]


def read_all(count: Any, rows: ContactRows, velocity: Any) -> Any:
    """u (slots, 3) of the first contacts."""
    return scan_first(count, lambda k, row: (k + 1.0, read(row, velocity)), np.array(0.0), rows)[1]


def new_impulse(row: ContactRows, impulse: Any, u: Any, friction: Any) -> Any:
    """The impulse (3,) of one contact with the velocity u (3,) that solves it alone."""
    G = np.zeros((3, 3))
    G[:2, 2] = row.across
    return coulomb_move(G, ContactSteps(row.normal_step, row.tangent_step), impulse, u, friction)


def residual_of(count: Any, contacts: SweepRows, impulse: Any, velocity: Any) -> Any:
    """The largest velocity change () [m/s] of a contact solved alone, starting from impulses (slots, 3)."""

    def visit(carry: Any, item: SweepRows) -> tuple[Any, None]:
        error, k = carry
        row, bias, friction = item
        own = np.take(impulse, k, axis=0)
        change = new_impulse(row, own, read(row, velocity) + bias, friction) - own
        largest = np.maximum(np.max(np.abs(change[:2])) / row.tangent_step, np.abs(change[2]) / row.normal_step)
        return (np.maximum(error, np.where(k < count, largest, 0.0)), k + 1.0), None

    return scan_first(count, visit, (np.array(0.0), np.array(0.0)), contacts)[0][0]
