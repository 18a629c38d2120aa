"""Rows of robots beside free bodies: contacts of links, joint limits, joint friction, one-sided constraints.

A contact on a robot's link has rows J over the velocities of all robots, and the response J W with the inverse inertia
W (`robot_dynamics`); what it has on the side of a free body is a `ContactRows`:

    u = Aᵀ (v₁ + ω₁ × r₁ - v₂ - ω₂ × r₂) + J v,      v += W Jᵀ λ

A row of joints is one number: its impulse is between bounds, which are those of friction, or zero and infinity.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import map as map_items
from delassus.compiler.tracing.flow.control import scan_first
from delassus.geometry.point_jacobians import PointJacobians
from delassus.step.bodies.collide import Slots
from delassus.step.bodies.motion import Poses
from delassus.step.bodies.rows import ContactRows, SceneVelocity, contact_row
from delassus.step.bodies.tables import BodyTable
from delassus.step.stages.correction import stop_demand


class LinkRows(NamedTuple):
    """Contacts (slots, …) with links of robots, or one of them.

    Attributes:
        contact: The rows on free bodies; links are the world, which does not move.
        J: (slots, 3, nv) on the velocities of robots.
        response: (slots, 3, nv) J W.
    """

    contact: ContactRows
    J: Any
    response: Any

    @property
    def normal_step(self) -> Any:
        """The normal impulse that changes the normal velocity by one [kg]."""
        return self.contact.normal_step

    @property
    def tangent_response(self) -> Any:
        """The larger response of a tangent to its own impulse [1/kg]."""
        return self.contact.tangent_response

    def velocities(self, velocity: SceneVelocity) -> Any:
        """u (3,) of one contact."""
        return self.contact.velocities(velocity.bodies) + self.J @ velocity.joints

    def push(self, velocity: SceneVelocity, impulse: Any) -> SceneVelocity:
        """Velocities after an impulse (3,) of one contact."""
        bodies = self.contact.push(velocity.bodies, impulse)
        return SceneVelocity(bodies, velocity.joints + impulse @ self.response)

    def part_of(self, velocity: SceneVelocity) -> SceneVelocity:
        """The velocities that the contacts act on: all."""
        return velocity

    def with_part(self, _: SceneVelocity, part: SceneVelocity) -> SceneVelocity:
        """All velocities with these ones changed."""
        return part

    def solve_alone(self, impulse: Any, u: Any, friction: Any) -> Any:
        """The impulse (3,) of one contact with the velocity u (3,) that solves it alone."""
        return self.contact.solve_alone(impulse, u, friction)

    def steps(self) -> Any:
        """Impulses (3,) of one contact that change its velocities by one, or less."""
        return self.contact.steps()

    def demand(self, gap: Any, predicted: Any, time_step: Any) -> Any:
        """The displacement () [m] that corrects a penetration."""
        return self.contact.demand(gap, predicted, time_step)

    def along_normal(self, impulse: Any) -> Any:
        """A normal impulse () as an impulse (3,)."""
        return self.contact.along_normal(impulse)


class JointRows(NamedTuple):
    """Rows (rows, …) of joints, or one of them: J (rows, nv), its response J W, and the impulse that changes its
    velocity by one. Their law has the least and the largest impulse."""

    J: Any
    response: Any
    normal_step: Any

    @property
    def tangent_response(self) -> float:
        """There are no tangents."""
        return 0.0

    def velocities(self, joints: Any) -> Any:
        """u (1,) of one row."""
        return np.stack([self.J @ joints])

    def push(self, joints: Any, impulse: Any) -> Any:
        """Velocities (nv,) after an impulse (1,)."""
        return joints + impulse[0] * self.response

    def part_of(self, velocity: SceneVelocity) -> Any:
        """The velocities that the rows act on."""
        return velocity.joints

    def with_part(self, velocity: SceneVelocity, part: Any) -> SceneVelocity:
        """All velocities with these ones changed."""
        return velocity._replace(joints=part)

    def solve_alone(self, impulse: Any, u: Any, bounds: tuple[Any, Any]) -> Any:
        """The impulse (1,) of one row with the velocity u (1,) that solves it alone."""
        return np.clip(impulse - self.normal_step * u, *bounds)

    def steps(self) -> Any:
        """The impulse (1,) that changes the velocity of one row by one."""
        return np.stack([self.normal_step])

    def demand(self, gap: Any, predicted: Any, _: Any) -> Any:
        """The displacement () [rad, m] that corrects a violated limit."""
        return stop_demand(gap, predicted)

    def along_normal(self, impulse: Any) -> Any:
        """An impulse () as an impulse (1,)."""
        return np.stack([impulse])


def link_rows(
    bodies: BodyTable, poses: Poses, reach: PointJacobians, W: Any, slots: Slots, match: Any, impulse: Any
) -> tuple[LinkRows, Any]:
    """The rows of contacts on links, and initial impulses (slots, 3): those of the previous contacts with the indices
    `match` (slots,).

    Args:
        bodies: The free bodies.
        poses: Poses of free bodies, the world and links.
        reach: Jacobians of the links.
        W: (nv, nv) inverse inertia of robots.
        slots: The contacts.
        match: (slots,) one plus the index of each contact among the previous ones; 0 for new contacts.
        impulse: (slots, 3) of the previous contacts.
    """
    world, links = float(bodies.n), len(reach.tree.links)
    inverse_mass = numpy.append(1.0 / bodies.mass, 0.0)
    every = frozenset(range(links + 1))

    def row(k: Any, item: Any) -> tuple[Any, Any]:
        candidate, gap, point, normal, first, second = item
        active, place = np.where(k < slots.count, 1.0, 0.0), np.take(match, k)
        one, two = (np.where(x > world, world, x) for x in (first, second))
        free = (candidate, gap, point, normal, one, two)

        def jacobian(axes: Any) -> Any:
            sides = [np.where(x > world, x - world - 1.0, float(links)) for x in (first, second)]
            return reach.rows(sides[0], every, point, axes) - reach.rows(sides[1], every, point, axes)

        def response(axes: Any) -> tuple[Any, Any]:
            J = active * jacobian(axes)
            return J, map_items(lambda w: J @ w, W).T

        contact, J, JW = contact_row(inverse_mass, poses, free, active, response)
        start = np.where((place > 0.5) & (active > 0.5), np.take(impulse, place - 1.0, axis=0), 0.0)
        return k + 1.0, (LinkRows(contact, J, JW), start)

    return scan_first(slots.count, row, np.array(0.0), tuple(slots[:6]))[1]


def joint_rows(J: Any, W: Any) -> JointRows:
    """Rows J (rows, nv) of joints with the inverse inertia W (nv, nv)."""

    def row(own: Any) -> tuple[Any, Any, Any]:
        response = W @ own
        G = own @ response
        return own, response, 1.0 / np.where(G > 0.0, G, 1.0)

    return JointRows(*map_items(row, J))
