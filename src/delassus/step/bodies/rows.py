"""Matrix-free rows of contacts between free bodies: velocities of rows, and responses to impulses.

A contact at the point x has the axes A = (t1, t2, n) and the arms r = x - c from the centers of mass of its bodies:

    u = Aᵀ (v₁ + ω₁ × r₁ - v₂ - ω₂ × r₂)            its velocity
    v₁ += A λ/m₁,  ω₁ += B₁ λ,  v₂ -= A λ/m₂,  ω₂ -= B₂ λ,      B = I⁻¹ [r]× A

A pass over all contacts takes about a hundred operations per contact, independent of the number of bodies. Rows of
robots (`robot_rows`) have the same methods; rows of one kind form a `RowGroup`.
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
from delassus.step.stages.correction import contact_demand


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

    def velocities(self, velocity: Any) -> Any:
        """u (3,) of one contact for velocities (bodies + 1, 6)."""
        one, two = np.take(velocity, self.first, axis=0), np.take(velocity, self.second, axis=0)
        return self.axes.T @ (one[:3] + np.cross(one[3:], self.arm1) - two[:3] - np.cross(two[3:], self.arm2))

    def push(self, velocity: Any, impulse: Any) -> Any:
        """Velocities (bodies + 1, 6) after an impulse (3,) of one contact."""
        f = self.axes @ impulse
        one = np.concatenate([self.inverse1 * f, self.turn1 @ impulse])
        two = np.concatenate([self.inverse2 * f, self.turn2 @ impulse])
        return np.add_at(np.add_at(velocity, self.first, one), self.second, -two)

    def part_of(self, velocity: Any) -> Any:
        """The velocities that the contacts act on."""
        return velocity.bodies if isinstance(velocity, SceneVelocity) else velocity

    def with_part(self, velocity: Any, part: Any) -> Any:
        """All velocities with these ones changed."""
        return velocity._replace(bodies=part) if isinstance(velocity, SceneVelocity) else part

    def solve_alone(self, impulse: Any, u: Any, friction: Any) -> Any:
        """The impulse (3,) of one contact with the velocity u (3,) that solves it alone."""
        return _solve_contact(self, impulse, u, friction)

    def steps(self) -> Any:
        """Impulses (3,) of one contact that change its velocities by one, or less."""
        return np.stack([self.tangent_step, self.tangent_step, self.normal_step])

    def demand(self, gap: Any, predicted: Any, time_step: Any) -> Any:
        """The displacement () [m] that corrects a penetration, see `stages.correction`."""
        return contact_demand(gap, predicted, time_step)

    def along_normal(self, impulse: Any) -> Any:
        """A normal impulse () as an impulse (3,)."""
        return np.stack([0.0, 0.0, impulse])


class SceneVelocity(NamedTuple):
    """Velocities of a scene with robots: of bodies (bodies + 1, 6) in the world, and of joints (nv,)."""

    bodies: Any
    joints: Any


class SweepRows(NamedTuple):
    """Rows (slots, …) in the order of a sweep: responses, the bias b (slots, k) of velocities, and the coefficients of
    their law: friction of contacts."""

    rows: Any
    bias: Any
    friction: Any


class RowGroup(NamedTuple):
    """Rows of one kind: the first `count` of a stack, and their gaps (slots,) [m, rad]."""

    count: Any
    items: SweepRows
    gap: Any


def _solve_contact(row: Any, impulse: Any, u: Any, friction: Any) -> Any:
    G = np.zeros((3, 3))
    G[:2, 2] = row.across
    return coulomb_move(G, ContactSteps(row.normal_step, row.tangent_step), impulse, u, friction)


def combine(function: Any, *velocities: Any) -> Any:
    """A function of velocities, for those of bodies and those of joints."""
    if isinstance(velocities[0], SceneVelocity):
        return SceneVelocity(*(function(*parts) for parts in zip(*velocities, strict=True)))
    return function(*velocities)


def contact_rows(bodies: BodyTable, poses: Poses, slots: Slots, match: Any, impulse: Any) -> tuple[ContactRows, Any]:
    """The rows of contacts, and initial impulses (slots, 3): those of the previous contacts with the indices `match`
    (slots,).

    Rows of slots without a contact, in states that have fewer than others, have no effect.
    """
    inverse_mass = numpy.append(1.0 / bodies.mass, 0.0)

    def row(k: Any, item: Any) -> tuple[Any, Any]:
        active, place = np.where(k < slots.count, 1.0, 0.0), np.take(match, k)
        own = contact_row(inverse_mass, poses, item, active)[0]
        start = np.where((place > 0.5) & (active > 0.5), np.take(impulse, place - 1.0, axis=0), 0.0)
        return k + 1.0, (own, start)

    return scan_first(slots.count, row, np.array(0.0), tuple(slots[:6]))[1]


def contact_row(
    inverse_mass: Any, poses: Poses, item: Any, active: Any, response: Any = None
) -> tuple[ContactRows, Any, Any]:
    """One contact, with the first fields of `Slots`; without effect if `active` is zero.

    `response` maps its axes to rows J (3, nv) on other velocities and their response J W, which are returned, too.
    """
    _, _, point, normal, first, second = item
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
    J: Any = None
    others: Any = None
    if response is not None:
        J, others = response(axes)
        G = G + others @ J.T
    steps = steps_of(G)
    own = np.maximum(G[0, 0], G[1, 1])
    parts = (active * axes, *arms, *turns, *inverses, G[:2, 2], steps.normal, steps.tangents, own)
    return ContactRows(first, second, *parts), J, others


def read(row: Any, velocity: Any) -> Any:
    """u (k,) of one row or contact, for the velocities that it acts on."""
    return row.velocities(velocity)


def push(row: Any, velocity: Any, impulse: Any) -> Any:
    """The velocities that a row or contact acts on, after its impulse (k,)."""
    return row.push(velocity, impulse)


def push_all(count: Any, rows: Any, velocity: Any, impulse: Any) -> Any:
    """Velocities after impulses (slots, k) of the first rows."""

    def body(carry: Any, row: Any) -> tuple[Any, None]:
        velocity, k = carry
        own = np.where(k < count, np.take(impulse, k, axis=0), 0.0)
        return (push(row, velocity, own), k + 1.0), None

    carry = (rows.part_of(velocity), np.array(0.0))
    return rows.with_part(velocity, scan_first(count, body, carry, rows)[0][0])


def read_all(count: Any, rows: Any, velocity: Any) -> Any:
    """u (slots, k) of the first rows."""
    part = rows.part_of(velocity)
    return scan_first(count, lambda k, row: (k + 1.0, read(row, part)), np.array(0.0), rows)[1]


def residual_of(count: Any, contacts: SweepRows, impulse: Any, velocity: Any) -> Any:
    """The largest velocity change () [m/s] of a row or contact solved alone, starting from impulses (slots, k)."""
    part = contacts.rows.part_of(velocity)

    def visit(carry: Any, item: SweepRows) -> tuple[Any, None]:
        error, k = carry
        row, bias, friction = item
        own = np.take(impulse, k, axis=0)
        change = row.solve_alone(own, read(row, part) + bias, friction) - own
        largest = np.max(np.abs(change / row.steps()))
        return (np.maximum(error, np.where(k < count, largest, 0.0)), k + 1.0), None

    return scan_first(count, visit, (np.array(0.0), np.array(0.0)), contacts)[0][0]
