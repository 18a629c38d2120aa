"""A step of many free bodies: the scheme of `stages` in loops over bodies, pairs and contacts.

    poses → broad and narrow phase → rows → v_f = v + h g → impulses → penetrations → flight

Forces act at the beginning of the step, then bodies fly freely (`scheme.rigid_flight`). Contacts are rows J v⁺ + b ≥ 0
as in `stages.assemble`: a gap may close but not become negative, an impact separates with its rebound velocity, and
lasting contacts of rolling bodies constrain their mean velocity over the step.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import map as map_items
from delassus.compiler.tracing.flow.control import scan_first
from delassus.dynamics.kinematics.jacobians import frame_jacobian
from delassus.step.bodies.collide import Slots, collide_bodies, match_contacts, place_shapes
from delassus.step.bodies.correct import correct_penetration
from delassus.step.bodies.motion import Poses, fly_bodies, masses_of, numbers_to, poses_of, world_velocities
from delassus.step.bodies.newton import NEWTON, solve_by_newton
from delassus.step.bodies.robots import scene_parts
from delassus.step.bodies.rolling import rolling_velocity
from delassus.step.bodies.rows import RowGroup, SweepRows, combine, contact_rows, push_all, read, read_all
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


class ContactSet(NamedTuple):
    """The contacts of a group: slots, rows, and the warm start (slots, 3)."""

    slots: Slots
    rows: Any
    start: Any


class BodySystem(NamedTuple):
    """The system of a step, whose unknowns are the impulses.

    The first group has the contacts of free bodies. With robots (see `robot_step`), two groups follow: contacts of
    robots, and rows of joints.

    Attributes:
        tables: The scene.
        poses: Poses of the bodies.
        contacts: The contacts.
        groups: Rows, b and the coefficients of laws.
        velocity: v_f, of bodies (bodies + 1, 6) in the world; with robots a `SceneVelocity`.
        guess: v_f with the warm start.
        start: The warm start (slots, k) of each group.
        rebound: (slots,) the part of b due to restitution, of each group; None for rows of joints.
        middle: (slots, k) row velocities at the impact, after half of gravity's change in the step.
        scale: () the velocity scale [m/s].
        deepest: () the smallest gap [m].
    """

    tables: Tables
    poses: Poses
    contacts: tuple[ContactSet, ...]
    groups: tuple[RowGroup, ...]
    velocity: Any
    guess: Any
    start: tuple[Any, ...]
    rebound: tuple[Any, ...]
    middle: tuple[Any, ...]
    scale: Any
    deepest: Any


class Extremes(NamedTuple):
    """Extremes over all contacts: the largest speed, the smallest gap, whether one separates with the warm start, and
    whether one is an impact."""

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
    slots = collide_bodies(tables, place_shapes(tables, poses, motion_bounds(tables, v, fall, h, numbers)), surface)
    match = match_contacts(tables, slots, state.contact)
    rows, start = contact_rows(tables.bodies, poses, slots, match, state.impulse.reshape(-1, 3))
    contacts = ContactSet(slots, rows, start)

    free = push_bodies(scene, poses, state.q, inputs, fall_freely(scene, v, h, numbers))
    guess = push_all(slots.count, rows, free, start)
    extremes, speeds = measure_speeds(contacts, v, free, guess, fall, h)
    # The impulses of an impact do not predict those of the next step: with them, contacts would separate.
    persists = extremes.leaves < 0.5
    moving = map_items(lambda k: np.where(persists, np.take(guess, k, axis=0), np.take(free, k, axis=0)), numbers)
    lead = rolling_velocity(tables, q, poses, numbers, slots, moving, surface, h)
    scale = extremes.speed + fall + 1e-12
    lasts = persists & (extremes.meets < 0.5)
    laws = ContactLaws(scale, fall, lasts, lead)
    items, rebound, middle = contact_items(scene, inputs, contacts, speeds, laws)
    groups = (RowGroup(slots.count, items, slots.gap),)
    return BodySystem(
        tables, poses, (contacts,), groups, free, guess, (start,), (rebound,), (middle,), scale, extremes.gap
    )


def fall_freely(scene: Scene, v: Any, h: Any, numbers: Any) -> Any:
    """Velocities (bodies + 1, 6) after gravity has acted on them for a step."""
    kick, n = numpy.array([*scene.model.gravity, 0.0, 0.0, 0.0]), float(len(numbers) - 1)
    return map_items(lambda k: np.take(v, k, axis=0) + np.where(k < n, h, 0.0) * kick, numbers)


class ContactLaws(NamedTuple):
    """Values that all contacts of a step share: the velocity scale and h g [m/s], whether warm starts persist, and the
    `rolling_velocity` (slots, 3), or None."""

    scale: Any
    fall: Any
    lasts: Any
    lead: Any


def contact_items(
    scene: Scene, inputs: StepInputs, contacts: ContactSet, speeds: Any, laws: ContactLaws
) -> tuple[SweepRows, Any, Any]:
    """Rows with b and friction, the part (slots,) of b due to restitution, and the velocities (slots, 3) at impacts.

    `speeds` are row velocities before and after forces act.
    """
    (slots, rows, _), (scale, fall, lasts, lead), h = contacts, laws, inputs.time_step
    ground, restitution, count = inputs.contact, inputs.contact.restitution, slots.count

    def contact(k: Any, row: Any) -> tuple[Any, Any]:
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
        # The bias of a slot without a contact is positive, so that it has no impulse.
        bias = np.where(within, rolls + np.stack([0.0, 0.0, closing]), np.stack([0.0, 0.0, scale]))
        candidate = np.take(slots.candidate, k)
        friction = contact_coefficients(scene, candidate, (ground.friction, 0.0, 0.0)).friction
        return k + 1.0, (SweepRows(row, bias, friction), rebound, 0.5 * (before + after))

    return scan_first(count, contact, np.array(0.0), rows)[1]


def push_bodies(scene: Scene, poses: Poses, q: Any, inputs: StepInputs, velocity: Any) -> Any:
    """Velocities (bodies + 1, 6) after external wrenches on frames have acted for a step."""
    if not scene.pushed or inputs.wrench is None:
        return velocity
    velocity, bodies = np.array(velocity), tables_of(scene).bodies
    for k, frame in enumerate(scene.pushed):
        J = frame_jacobian.function(scene.model, q, frame=frame, reference="LOCAL_WORLD_ALIGNED")
        force = np.array(inputs.wrench[k]) @ J
        places = scene_parts(scene).body_v
        for n in range(bodies.n):
            own = force[list(places[6 * n : 6 * n + 6])]
            push, turn = poses.R[n] @ own[:3], poses.R[n] @ (own[3:] - np.cross(bodies.com[n], own[:3]))
            kick = np.concatenate([push / bodies.mass[n], poses.inverse_inertia[n] @ turn])
            velocity[n] = velocity[n] + inputs.time_step * kick
    return velocity


def measure_speeds(contacts: ContactSet, v: Any, free: Any, guess: Any, fall: Any, h: Any) -> tuple[Extremes, Any]:
    """The extremes over all contacts of a group, and row velocities (slots, 3) before and after forces act.

    `v`, `free` and `guess` are velocities before forces, after forces, and with the warm start.
    """
    slots, rows, start = contacts
    v, free, guess = (rows.part_of(x) for x in (v, free, guess))

    def speed(carry: tuple[Extremes, Any], row: Any) -> tuple[Any, Any]:
        most, k = carry
        before, after, guessed = (read(row, x) for x in (v, free, guess))
        gap, within, push = np.take(slots.gap, k), k < slots.count, np.take(start, k, axis=0)[2]
        leaves = within & (push > 0.0) & (guessed[2] > SLOW * fall)
        meets = within & (push <= 0.0) & (before[2] < -SLOW * fall) & (gap + h * after[2] <= 0.0)
        largest = np.max(np.maximum(np.abs(before), np.abs(after)))
        extremes = Extremes(
            np.maximum(most.speed, largest),
            np.minimum(most.gap, gap),
            np.maximum(most.leaves, np.where(leaves, 1.0, 0.0)),
            np.maximum(most.meets, np.where(meets, 1.0, 0.0)),
        )
        return (extremes, k + 1.0), (before, after)

    zero = np.array(0.0)
    (extremes, _), speeds = scan_first(slots.count, speed, (Extremes(zero, zero, zero, zero), zero), rows)
    return extremes, speeds


def motion_bounds(tables: Tables, v: Any, fall: Any, h: Any, numbers: Any) -> Any:
    """Bounds (bodies + 1 + links,) [m] on the motion of points of bodies and links in a step: 2 h times their largest
    speed."""
    world = float(tables.bodies.n)

    def distance(k: Any) -> Any:
        own, extent = np.take(v, k, axis=0), np.take(tables.extent, k)
        speed = np.sqrt(own[:3] @ own[:3]) + extent * np.sqrt(own[3:] @ own[3:]) + fall
        moves = k < world
        if len(tables.extent) > tables.bodies.n + 1:
            moves = moves | (k > world)
        return np.where(moves, 2.0 * h * speed, 0.0)

    return map_items(distance, numbers)


def solve_system(scene: Scene, system: BodySystem, inputs: StepInputs) -> tuple[Impulses, Any]:
    """Stage 5: impulses (slots, k) of all groups with the largest restitution that adds no energy, and velocities."""
    groups, scale = system.groups, system.scale
    solve_rows = solve_bodies
    if scene.method == NEWTON:
        solve_rows = partial(solve_by_newton, masses_of(system.tables.bodies, system.poses))
    if not scene.bounces:
        solution, velocity = solve_rows(groups, system.guess, system.start, scale, inputs.solver)
        return Impulses(solution.impulse, solution.residual, solution.iterations, solution.done), velocity

    # The energy of impacts is computed from the rows of all slots, including those without a contact.
    def all_slots(values: Any) -> Any:
        kept = []
        for group, own in zip(groups, values, strict=True):

            def slot(k: Any, group: RowGroup = group, own: Any = own) -> Any:
                return np.where(k < group.count, np.take(own, k, axis=0), 0.0)

            kept.append(map_items(slot, numbers_to(len(group.gap))).reshape(-1))
        return np.concatenate(kept) if len(kept) > 1 else kept[0]

    def separate(values: Any) -> tuple[Any, ...]:
        parts, start = [], 0
        for own in system.start:
            size = own.shape[0] * own.shape[1]
            parts.append(values[start : start + size].reshape(own.shape))
            start += size
        return tuple(parts)

    def push(velocity: Any, impulse: Any) -> Any:
        for group, own in zip(groups, impulse, strict=True):
            velocity = push_all(group.count, group.items.rows, velocity, own)
        return velocity

    def solve(share: Any, start: Any) -> Solved:
        """Solve with a fraction () of the restitution at each contact (slots,)."""
        biased = []
        for group, rebound in zip(groups, system.rebound, strict=True):

            def reduce(k: Any, item: SweepRows, rebound: Any = rebound) -> tuple[Any, Any]:
                less = (1.0 - share[0]) * np.take(rebound, k)
                return k + 1.0, item._replace(bias=item.bias - np.stack([0.0, 0.0, less]))

            if rebound is None:
                biased.append(group)
                continue
            items = scan_first(group.count, reduce, np.array(0.0), group.items)[1]
            biased.append(group._replace(items=items))
        impulse = separate(start)
        solution, _ = solve_rows(biased, push(system.velocity, impulse), impulse, scale, inputs.solver)
        return solution._replace(impulse=all_slots(solution.impulse))

    def respond(impulse: Any) -> Any:
        pushed = push(combine(lambda v: np.zeros(v.shape), system.velocity), separate(impulse))
        return all_slots([read_all(group.count, group.items.rows, pushed) for group in groups])

    zero = np.array(0.0)
    struck = np.any(np.stack([np.min(own) < 0.0 for own in map(_within, groups, system.rebound) if own is not None]))
    empty = Solved(all_slots(system.start), zero, zero, np.array(True))
    solution, fraction = solve_without_gain(
        solve, respond, all_slots(system.middle), struck, np.ones(1), np.zeros(1), empty, GAIN * scale
    )
    impulse = separate(solution.impulse)
    velocity = push(system.velocity, impulse)
    return Impulses(impulse, solution.residual, solution.iterations, solution.done, fraction), velocity


def _within(group: RowGroup, rebound: Any) -> Any:
    """Rebound velocities (slots,) of contacts, zero in slots without one; None for rows of joints."""
    if rebound is None:
        return None
    return map_items(lambda k: np.where(k < group.count, np.take(rebound, k), 0.0), numbers_to(len(group.gap)))


def record_contacts(tables: Tables, slots: Slots, impulse: Any) -> tuple[Any, Any]:
    """Candidates (slots,) and impulses (slots, 3) of the contacts, for the state; slots without a contact have an
    index that is no candidate."""
    none = float(numpy.argmax(tables.rank))

    def recorded(k: Any) -> tuple[Any, Any]:
        within = k < slots.count
        candidate = np.where(within, np.take(slots.candidate, k), none)
        return candidate, np.where(within, np.take(impulse, k, axis=0), 0.0)

    return map_items(recorded, numbers_to(tables.slots))


def step_bodies(scene: Scene, last: StepResult, inputs: StepInputs) -> StepResult:
    """One time step of free bodies."""
    state, h = last.state, inputs.time_step
    system = assemble_bodies(scene, state, inputs)
    tables, slots = system.tables, system.contacts[0].slots
    impulses, velocity = solve_system(scene, system, inputs)
    shift = correct_penetration(system.groups, system.deepest, velocity, h)
    flight = fly_bodies(tables.bodies, state.q.reshape(-1, 7), system.poses, velocity, shift, h)
    candidate, impulse = record_contacts(tables, slots, impulses.impulse[0])
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
