"""A step of many free bodies: the scheme of `stages` in loops over bodies, pairs and contacts.

    poses → broad and narrow phase → rows → v_f = v + h g → impulses → penetrations → flight

Forces act at the beginning of the step, then bodies fly freely (`scheme.rigid_flight`). Contacts are rows J v⁺ + b ≥ 0
as in `stages.assemble`: a gap may close but not more, an impact leaves with its rebound velocity, and lasting contacts
of rolling bodies are held to their mean velocity over the step.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import map as map_items
from delassus.compiler.tracing.flow.control import scan_first
from delassus.dynamics.kinematics.jacobians import frame_jacobian
from delassus.step.bodies.collide import Slots, collide_bodies, match_contacts
from delassus.step.bodies.correct import correct_penetration
from delassus.step.bodies.motion import Poses, fly_bodies, masses_of, numbers_to, poses_of, world_velocities
from delassus.step.bodies.newton import NEWTON, solve_by_newton
from delassus.step.bodies.rolling import rolling_velocity
from delassus.step.bodies.rows import ContactRows, SweepRows, contact_rows, push_all, read, read_all
from delassus.step.bodies.solve import solve_bodies
from delassus.step.bodies.tables import Tables, tables_of
from delassus.step.impacts.detection import SLOW, fall_speed, rebound_at_start
from delassus.step.impacts.dissipation import solve_without_gain
from delassus.step.points.slot_friction import contact_coefficients
from delassus.step.scene import Scene
from delassus.step.scheme.free_rotation import SUBSTEPS
from delassus.step.stages.assemble import FAR
from delassus.step.stages.collide import ground_surface
from delassus.step.stages.pipeline import GAIN
from delassus.step.stages.solve import Solved
from delassus.step.stages.types import Impulses, StepInputs, StepResult, StepState


class BodySystem(NamedTuple):
    """A step of free bodies before its impulses are known.

    Attributes:
        tables: The scene.
        poses: Poses of the bodies.
        slots: The contacts.
        contacts: Their rows, b and friction.
        velocity: (bodies + 1, 6) v_f in the world.
        guess: (bodies + 1, 6) v_f with the warm start.
        start: (slots, 3) the warm start.
        rebound: (slots,) the part of b due to restitution.
        middle: (slots, 3) row velocities at the impact, after half of gravity's change in the step.
        scale: () of velocities [m/s].
        deepest: () the smallest gap [m].
    """

    tables: Tables
    poses: Poses
    slots: Slots
    contacts: SweepRows
    velocity: Any
    guess: Any
    start: Any
    rebound: Any
    middle: Any
    scale: Any
    deepest: Any


class _Extremes(NamedTuple):
    """Over all contacts: the largest speed, the smallest gap, whether one rebounds, whether one is an impact."""

    speed: Any
    gap: Any
    leaves: Any
    meets: Any


def assemble_bodies(scene: Scene, state: StepState, inputs: StepInputs) -> BodySystem:
    """Stages 1 to 4 of a step."""
    tables, h = tables_of(scene), inputs.time_step
    n, fall = tables.bodies.n, fall_speed(scene.model, h)
    q, surface, numbers = state.q.reshape(n, 7), ground_surface(scene, inputs.ground), numbers_to(n + 1)
    poses = poses_of(tables.bodies, q, numbers)
    v = world_velocities(tables.bodies, poses, state.v.reshape(n, 6), numbers)
    slots = collide_bodies(tables, poses, surface, _reach(tables, v, fall, h, numbers))
    match = match_contacts(tables, slots, state.contact)
    rows, start = contact_rows(tables.bodies, poses, slots, match, state.impulse.reshape(-1, 3))

    kick, count = numpy.array([*scene.model.gravity, 0.0, 0.0, 0.0]), slots.count
    free = map_items(lambda k: np.take(v, k, axis=0) + np.where(k < float(n), h, 0.0) * kick, numbers)
    free = _push_frames(scene, poses, state.q, inputs, free)
    guess = push_all(count, rows, free, start)
    (extremes, _), speeds = scan_first(count, _speeds(slots, start, v, free, guess, fall, h), _nothing(), rows)
    # Impulses of an impact are no guide to the step after it: what they pushed would leave.
    persists = extremes.leaves < 0.5
    moving = map_items(lambda k: np.where(persists, np.take(guess, k, axis=0), np.take(free, k, axis=0)), numbers)
    lead = rolling_velocity(tables, q, poses, numbers, slots, moving, surface, h)
    scale = extremes.speed + fall + 1e-12
    lasts = persists & (extremes.meets < 0.5)
    ground, restitution = inputs.contact, inputs.contact.restitution

    def contact(k: Any, row: ContactRows) -> tuple[Any, Any]:
        gap, before, after = np.take(slots.gap, k), *(np.take(u, k, axis=0) for u in speeds)
        rolls = np.zeros(3) if lead is None else np.where(lasts, row.axes.T @ np.take(lead, k, axis=0), 0.0)
        closing = np.minimum(np.maximum(gap, 0.0) / h, FAR * scale)
        rebound, within = np.array(0.0), k < count
        if scene.bounces:
            leaves, separates = rebound_at_start(closing, before[2], after[2], restitution)
            impact = (before[2] < -SLOW * fall) & (gap + h * (after[2] + rolls[2]) <= 0.0)
            impact = impact & (restitution > 0.0) & separates & within
            rebound = np.where(impact, np.minimum(-leaves, closing), 0.0)
            closing = np.where(impact, rebound, closing)
        # A slot without a contact does not move: nothing pushes it.
        bias = np.where(within, rolls + np.stack([0.0, 0.0, closing]), np.stack([0.0, 0.0, scale]))
        candidate = np.take(slots.candidate, k)
        friction = contact_coefficients(scene, candidate, (ground.friction, 0.0, 0.0)).friction
        return k + 1.0, (SweepRows(row, bias, friction), rebound, 0.5 * (before + after))

    _, (contacts, rebound, middle) = scan_first(count, contact, np.array(0.0), rows)
    return BodySystem(tables, poses, slots, contacts, free, guess, start, rebound, middle, scale, extremes.gap)


def _push_frames(scene: Scene, poses: Poses, q: Any, inputs: StepInputs, velocity: Any) -> Any:
    """Velocities (bodies + 1, 6) after external wrenches on frames have acted for a step."""
    if not scene.pushed or inputs.wrench is None:
        return velocity
    velocity, bodies = np.array(velocity), tables_of(scene).bodies
    for k, frame in enumerate(scene.pushed):
        J = frame_jacobian.function(scene.model, q, frame=frame, reference="LOCAL_WORLD_ALIGNED")
        force = np.array(inputs.wrench[k]) @ J
        for n in range(bodies.n):
            own = force[6 * n : 6 * n + 6]
            push, turn = poses.R[n] @ own[:3], poses.R[n] @ (own[3:] - np.cross(bodies.com[n], own[:3]))
            kick = np.concatenate([push / bodies.mass[n], poses.inverse_inertia[n] @ turn])
            velocity[n] = velocity[n] + inputs.time_step * kick
    return velocity


def _nothing() -> tuple[_Extremes, Any]:
    zero = np.array(0.0)
    return _Extremes(zero, zero, zero, zero), zero


def _speeds(slots: Slots, start: Any, v: Any, free: Any, guess: Any, fall: Any, h: Any) -> Any:
    """Loop body that computes velocities (3,) of rows before and after forces, and their maximum."""

    def speed(carry: tuple[_Extremes, Any], row: ContactRows) -> tuple[Any, Any]:
        most, k = carry
        before, after, guessed = (read(row, x) for x in (v, free, guess))
        gap, within, push = np.take(slots.gap, k), k < slots.count, np.take(start, k, axis=0)[2]
        leaves = within & (push > 0.0) & (guessed[2] > SLOW * fall)
        meets = within & (push <= 0.0) & (before[2] < -SLOW * fall) & (gap + h * after[2] <= 0.0)
        largest = np.max(np.maximum(np.abs(before), np.abs(after)))
        extremes = _Extremes(
            np.maximum(most.speed, largest),
            np.minimum(most.gap, gap),
            np.maximum(most.leaves, np.where(leaves, 1.0, 0.0)),
            np.maximum(most.meets, np.where(meets, 1.0, 0.0)),
        )
        return (extremes, k + 1.0), (before, after)

    return speed


def _reach(tables: Tables, v: Any, fall: Any, h: Any, numbers: Any) -> Any:
    """(bodies + 1,) bound on the motion of points of bodies in a step [m]: twice their velocities times the step."""

    def distance(k: Any) -> Any:
        own, extent = np.take(v, k, axis=0), np.take(tables.extent, k)
        speed = np.sqrt(own[:3] @ own[:3]) + extent * np.sqrt(own[3:] @ own[3:]) + fall
        return np.where(k < float(tables.bodies.n), 2.0 * h * speed, 0.0)

    return map_items(distance, numbers)


def solve_system(scene: Scene, system: BodySystem, inputs: StepInputs) -> tuple[Impulses, Any]:
    """Stage 5: impulses (slots, 3) with the largest restitution that adds no energy, and velocities (bodies + 1, 6)."""
    contacts, count, scale = system.contacts, system.slots.count, system.scale
    solve_contacts = solve_bodies
    if scene.method == NEWTON:
        solve_contacts = partial(solve_by_newton, masses_of(system.tables.bodies, system.poses))
    if not scene.bounces:
        solution, velocity = solve_contacts(count, contacts, system.guess, system.start, scale, inputs.solver)
        return Impulses(solution.impulse, solution.residual, solution.iterations, solution.done), velocity

    # Rows of all slots, those without a contact included, as the energy of impacts takes them.
    numbers = numbers_to(len(system.slots.gap))

    def all_slots(values: Any) -> Any:
        return map_items(lambda k: np.where(k < count, np.take(values, k, axis=0), 0.0), numbers)

    def solve(share: Any, start: Any) -> Solved:
        """Solve with a fraction () of the restitution at each contact (slots,)."""

        def biased(k: Any, item: SweepRows) -> tuple[Any, Any]:
            less = (1.0 - share[0]) * np.take(system.rebound, k)
            return k + 1.0, item._replace(bias=item.bias - np.stack([0.0, 0.0, less]))

        _, own = scan_first(count, biased, np.array(0.0), contacts)
        impulse = start.reshape(-1, 3)
        velocity = push_all(count, contacts.rows, system.velocity, impulse)
        solution, _ = solve_contacts(count, own, velocity, impulse, scale, inputs.solver)
        return solution._replace(impulse=solution.impulse.reshape(-1))

    def respond(impulse: Any) -> Any:
        pushed = push_all(count, contacts.rows, np.zeros(system.velocity.shape), impulse.reshape(-1, 3))
        return all_slots(read_all(count, contacts.rows, pushed)).reshape(-1)

    zero = np.array(0.0)
    struck = np.min(all_slots(system.rebound)) < 0.0
    empty = Solved(all_slots(system.start).reshape(-1), zero, zero, np.array(True))
    middle = all_slots(system.middle).reshape(-1)
    solution, fraction = solve_without_gain(
        solve, respond, middle, struck, np.ones(1), np.zeros(1), empty, GAIN * scale
    )
    impulse = solution.impulse.reshape(-1, 3)
    velocity = push_all(count, contacts.rows, system.velocity, impulse)
    return Impulses(impulse, solution.residual, solution.iterations, solution.done, fraction), velocity


def step_bodies(scene: Scene, last: StepResult, inputs: StepInputs) -> StepResult:
    """One step of time."""
    state, h = last.state, inputs.time_step
    system = assemble_bodies(scene, state, inputs)
    tables, slots = system.tables, system.slots
    impulses, velocity = solve_system(scene, system, inputs)
    shift = correct_penetration(slots, system.contacts, system.deepest, velocity, h)
    flight = fly_bodies(tables.bodies, state.q.reshape(-1, 7), system.poses, velocity, shift, h)
    none = float(numpy.argmax(tables.rank))

    def recorded(k: Any) -> tuple[Any, Any]:
        within = k < slots.count
        candidate = np.where(within, np.take(slots.candidate, k), none)
        return candidate, np.where(within, np.take(impulses.impulse, k, axis=0), 0.0)

    candidate, impulse = map_items(recorded, numbers_to(tables.slots))
    return StepResult(
        StepState(
            flight.q.reshape(-1),
            flight.v.reshape(-1),
            impulse.reshape(-1),
            candidate,
            state.time + h,
            state.activation,
        ),
        impulses.residual,
        last.iterations + impulses.iterations,
        last.overflow | slots.overflow,
        last.unsolved | ~impulses.converged,
        last.omitted,
        last.clipped,
        np.array(0.0),
        last.too_long | (flight.substeps > float(SUBSTEPS)),
        last.energy_limited | (impulses.restitution_fraction < 1.0),
    )
