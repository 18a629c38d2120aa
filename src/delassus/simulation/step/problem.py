"""The contact problem of a step of time: its rows, G = J M̂⁻¹ Jᵀ, and what rows are held to.

With M̂ = M + diag(h d + h² k) for damping d and stiffness k of joints and servos, and (h d + h² k) r rᵀ for those of a
tendon with moment arms r:

    v_f = v + h M̂⁻¹ (τ - c)                       what the velocity would be without contacts, c at the middle
    g = J v_f + what rows are held to

A gap may close and not more: J v⁺ + gap/h ≥ 0, with the J of the step's middle where a free body rolls. A contact that
would be passed faster than gravity accelerates in two steps strikes: it leaves with e times the velocity that it meets
the ground with, as far as that takes it above the ground.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.constrained.elimination.tree_factor import tree_factor
from delassus.dynamics.forces.rnea import newton_euler
from delassus.dynamics.kinematics.kinematics import world_poses
from delassus.dynamics.mass.crba import mass_matrix
from delassus.dynamics.mass.factor import forward, substitute
from delassus.dynamics.tree.poses import mirrored
from delassus.model.links import links_of
from delassus.simulation.actuators.drive import Drive, drive
from delassus.simulation.step.contacts import GroundNumbers, warm_start
from delassus.simulation.step.rows import StepRows, step_rows
from delassus.simulation.step.solve import PATIENCE, TOLERANCE, Limits
from delassus.simulation.step.world import World
from delassus.stepping.scheme.components import Component, components
from delassus.stepping.scheme.energy import gravity_forces
from delassus.stepping.scheme.flying import turning, without_flight

_FAR: Final = 10.0
"""Gaps that close at more than so many times the velocities of a step count as closing at that: they stay open."""


class Given(NamedTuple):
    """What is the same in all steps of a control period."""

    control: Any
    h: Any
    ground: GroundNumbers
    friction: Any
    restitution: Any
    limits: Limits = Limits(TOLERANCE, PATIENCE)
    torsional: Any = 0.0
    rolling: Any = 0.0


class Moved(NamedTuple):
    """A state after a step, with the impulses and candidates of the contacts, and how the solve ended.

    Impulses and candidates are those of the whole world; `again` says that a row which was left out would matter,
    `angle` [rad] is the largest that a joint turned by in the last step, and `too_long` says that a step was too long,
    `limited` that the restitution of a strike was lowered.
    """

    q: Any
    v: Any
    impulse: Any
    contact: Any
    time: Any
    residual: Any
    iterations: Any
    many: Any
    unsolved: Any
    again: Any
    clipped: Any
    angle: Any
    too_long: Any
    limited: Any


class Problem(NamedTuple):
    """The contact problem of a step: its rows, the response S of their motions, g, what restitution has in g,
    velocities of rows before the step and after it without impulses, their scale, the free velocity, impulses to start
    from, how the velocity responds to them, and to impulses of joints; the mass matrix M (nv, nv), and all forces (nv,)
    but velocity products, these (nv,), what they change velocities by (nv,); what moves on its own."""

    rows: StepRows
    S: Any
    g: Any
    thrown: Any
    before: Any
    after: Any
    scale: Any
    free: Any
    start: Any
    response: Callable[[Any], Any]
    solve: Callable[[Any], Any]
    driven: Drive
    inertia: Any
    force: Any
    products: Any
    kick: Any
    parts: tuple[Component, ...]


def problem_of(world: World, last: Moved, given: Given, time: Any, modes: Any = None) -> Problem:
    """The contact problem of a step of time; `modes` of servos as `drive` takes them."""
    model, h, q, v = world.model, given.h, last.q, last.v
    poses = world_poses(links_of(model), q)
    rows = step_rows(world, q, v, poses, given.ground, h, time)
    driven = drive(model, world.actuators, q, v, given.control, h, modes)
    factor = tree_factor(model, q, rows.J, added=driven.added, rank_ones=driven.rank_ones)

    def solve(force: Any) -> Any:
        return substitute(factor.above, factor.U, factor.D, force)

    def response(impulse: Any) -> Any:
        return forward(factor.above, factor.U, factor.Y.T @ rows.motions(impulse))  # M̂⁻¹ Jᵀ λ

    # Velocity products are those of the middle of a step with the impulses of the one before, so what rests has none.
    start = warm_start(world, rows.touching.number, last.contact, last.impulse) if world.m else last.impulse
    if world.mechanism.m:
        at = slice(world.in_contact, world.in_contact + world.mechanism.m)
        start[at] = np.where(rows.moves, start[at], 0.0)
    parts, M = components(world.mechanism, q), mass_matrix(model, q)

    def accelerating(v: Any) -> Any:
        """Forces (nv,) of motors, gravity and velocity products; free bodies have these in their flight."""
        moving = without_flight(parts, v)
        return driven.force - newton_euler(model, q, moving, turning(model, moving), None)

    force = driven.force + gravity_forces(model, q, M, parts)
    kick = h * solve(force)
    change = kick
    pushing, lasts = world.pushing, np.array(True)
    if world.m:
        pushed = response(start)
        # Impulses of a strike are no guide to the step after it: what they pushed would leave.
        apart = np.where(start[pushing] > 0.0, rows.velocities(v + change + pushed)[pushing], 0.0)
        lasts = np.all(apart <= 2.0 * _pull(world, h)) if pushing else lasts
        change = change + np.where(lasts, pushed, 0.0)

    acting = accelerating(v + 0.5 * change)
    free = v + h * solve(acting)
    if world.bounces:  # what never comes to rest shows what one middle gains
        bounces = given.restitution > 0.0
        acting = np.where(bounces, accelerating(0.5 * (v + free + np.where(lasts, pushed, 0.0))), acting)
        free = np.where(bounces, v + h * solve(acting), free)
    before, after = rows.velocities(v), rows.velocities(free)
    if world.bounces:
        # A strike's energy is that of velocities that bodies have turned with already, but that gravity and motors have
        # not changed: with those of the beginning, h ω of it would be gained or lost.
        before = np.where(bounces, after - rows.velocities(kick), before)
    lead = rows.touching.lead(v + change)
    g, thrown, scale = _demanded(world, rows, before, after, start, np.where(lasts, lead, 0.0), given)
    S = mirrored(factor.delassus)
    return Problem(
        rows,
        S,
        g,
        thrown,
        before,
        after,
        scale,
        free,
        start,
        response,
        solve,
        driven,
        M,
        force,
        force - acting,
        kick,
        parts,
    )


def _pull(world: World, h: Any) -> Any:
    """The velocity [m/s] that gravity gives in a step."""
    return h * float(numpy.linalg.norm(world.model.gravity))


def _fastest(world: World, velocity: Any) -> Any:
    """The largest of velocities (m,), without the turns of contacts: they do not say how fast gaps close."""
    if world.contact_rows == 3:
        return np.max(np.abs(velocity))
    turns = {n + 1 + k for n in world.normals for k in range(world.contact_rows - 3)}
    return np.max(np.abs(velocity[[row for row in range(world.m) if row not in turns]]))


def _demanded(
    world: World, rows: StepRows, before: Any, after: Any, start: Any, lead: Any, given: Given
) -> tuple[Any, Any, Any]:
    """What rows (m,) have beyond what they must not fall below, restitution's part in it, the scale of velocities.

    Contacts that last, of which there were all in the step before, are held to their mean velocities over the step, by
    `lead` (contact rows,) more than those of its beginning; a strike would gain energy from that.
    """
    if not world.m:
        return after, after, np.array(1.0)
    h, loops, slots = given.h, world.mechanism.m, world.slots
    pull = _pull(world, h)
    scale = np.maximum(_fastest(world, after), _fastest(world, before)) + pull + 1e-12
    far = _FAR * scale
    g, thrown = np.array(after), np.zeros(world.m)
    if slots:
        normals, contacts = slice(2, world.in_contact, world.contact_rows), slice(world.in_contact)
        met = (start[normals] <= 0.0) & (before[normals] < -2.0 * pull)
        met = met & (rows.touching.gap + h * after[normals] <= 0.0)
        g[contacts] = after[contacts] + np.where(np.any(met), 0.0, lead)
    for k in range(slots):
        gap, n = rows.touching.gap[k], world.normals[k]
        closing = np.minimum(np.maximum(gap, 0.0) / h, far)
        if world.bounces:
            leaves, comes_off = _rebound(before[n], after[n], closing, given.restitution)
            strikes = (before[n] < -2.0 * pull) & (gap + h * g[n] <= 0.0) & (given.restitution > 0.0) & comes_off
            thrown[n] = np.where(strikes, np.minimum(-leaves, closing), 0.0)
            closing = np.where(strikes, thrown[n], closing)
        g[n] = g[n] + closing
    at = slice(world.in_contact, world.in_contact + loops)
    if loops:
        g[at] = after[at] - rows.asked
    ends = slice(at.stop, at.stop + world.ends)
    if world.ends:
        g[ends] = after[ends] + np.minimum(np.maximum(rows.stop_gap, 0.0) / h, far)
    return g, thrown, scale


def _rebound(before: Any, after: Any, closing: Any, restitution: Any) -> tuple[Any, Any]:
    """The velocity with which a strike leaves, and whether it comes off the ground.

    It meets the ground with w at some time in the step, w² = u (u + f) - 2 f gap/h for the velocity u before and what
    it gains in the step, f; that is the energy of a step that begins above the ground. It leaves with v⁺ so that the
    impulse, (v⁺ - u - f)/G, takes (1 - e²) w²/(2 G) of it: (v⁺ - u - f) (v⁺ + u) = -(1 - e²) w².
    """
    f = after - before
    met = np.maximum(before * after - 2.0 * f * closing, 0.0)
    left = (before + 0.5 * f) ** 2 - (1.0 - restitution * restitution) * met
    return 0.5 * f + np.sqrt(np.maximum(left, 0.0)), left > 0.0


def beginning(world: World, q: Any, v: Any, impulse: Any, contact: Any, time: Any) -> Moved:
    """Where the first step of a period starts; of arrays that have one element at least, those that mean something."""
    zero = np.array(0.0)
    impulse, contact = impulse[: world.whole.m], contact[: world.all_slots]
    return Moved(q, v, impulse, contact, time, *[zero] * 9)
