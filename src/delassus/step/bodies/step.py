"""A step of many free bodies: the scheme of `stages` in loops over bodies, pairs and contacts.

    poses → broad and narrow phase → rows → v_f = v + h g → impulses → penetrations → flight

Forces act at once, as the step begins, and bodies fly freely from there (`scheme.rigid_flight`). Contacts are rows
J v⁺ + b ≥ 0 as in `stages.assemble`: a gap may close and not more, an impact leaves with its rebound velocity, and
lasting contacts of bodies that roll are held to their mean velocity over the step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import map as map_items
from delassus.step.bodies.collide import Reach, Slots, collide_bodies, match_impulses
from delassus.step.bodies.correct import correct_penetration
from delassus.step.bodies.motion import Poses, fly_bodies, poses_of, world_velocities
from delassus.step.bodies.rolling import rolling_velocity
from delassus.step.bodies.rows import ContactRows, contact_rows, push_all, read_all
from delassus.step.bodies.solve import solve_bodies
from delassus.step.bodies.tables import Tables, tables_of
from delassus.step.impacts.dissipation import solve_without_gain
from delassus.step.impacts.strikes import SLOW, fall_speed, rebound_at_start
from delassus.step.scene import Scene
from delassus.step.scheme.free_rotation import SUBSTEPS
from delassus.step.stages.assemble import FAR
from delassus.step.stages.collide import ground_surface
from delassus.step.stages.friction import contact_coefficients
from delassus.step.stages.pipeline import GAIN
from delassus.step.stages.solve import Solved
from delassus.step.stages.types import Impulses, StepInputs, StepResult, StepState

_MARGIN = 1e-2
"""Of the smallest shape's size: gaps that are smaller are contacts, whether they may close in the step or not."""


class BodySystem(NamedTuple):
    """A step of free bodies before its impulses are known.

    Attributes:
        tables: The scene.
        poses: Of the bodies.
        slots: The contacts.
        rows: Their rows.
        velocity: (bodies + 1, 6) v_f in the world.
        bias: (slots, 3) b.
        rebound: (slots, 3) the part of b that restitution has.
        middle: (slots, 3) velocities of rows as contacts meet, half of gravity's step later.
        start: (slots, 3) the warm start.
        scale: () of velocities [m/s].
    """

    tables: Tables
    poses: Poses
    slots: Slots
    rows: ContactRows
    velocity: Any
    bias: Any
    rebound: Any
    middle: Any
    start: Any
    scale: Any


def assemble_bodies(scene: Scene, state: StepState, inputs: StepInputs) -> BodySystem:
    """Stages 1 to 4 of a step."""
    tables, h = tables_of(scene), inputs.time_step
    n, fall = tables.bodies.count, fall_speed(scene.model, h)
    q, surface = state.q.reshape(n, 7), ground_surface(scene, inputs.ground)
    poses = poses_of(tables.bodies, q)
    v = world_velocities(tables.bodies, poses, state.v.reshape(n, 6))
    slots = collide_bodies(tables, poses, surface, _reach(tables, v, fall, h))
    rows = contact_rows(poses, slots)
    start = match_impulses(tables, slots, state.contact, state.impulse.reshape(-1, 3))

    kick = numpy.array([*(scene.model.gravity), 0.0, 0.0, 0.0])
    free = np.concatenate([map_items(lambda v: v + h * kick, v[:-1]), numpy.zeros((1, 6))])
    guess = push_all(rows, free, start)
    before, after, guessed = (read_all(rows, x) for x in (v, free, guess))
    # Impulses of an impact are no guide to the step after it: what they pushed would leave.
    leaving = map_items(lambda p, u: np.where((p[2] > 0.0) & (u[2] > SLOW * fall), 1.0, 0.0), start, guessed)
    persists = np.max(leaving) < 0.5
    moving = map_items(lambda x, y: np.where(persists, x, y), guess, free)
    lead = rolling_velocity(tables, q, poses, slots, rows, moving, surface, h)

    def speed(active: Any, before: Any, after: Any, start: Any, gap: Any) -> tuple[Any, Any]:
        meets = (start[2] <= 0.0) & (before[2] < -SLOW * fall) & (gap + h * after[2] <= 0.0) & (active > 0.5)
        return active * np.max(np.maximum(np.abs(before), np.abs(after))), np.where(meets, 1.0, 0.0)

    speeds, meets = map_items(speed, slots.active, before, after, start, slots.gap)
    scale = np.max(speeds) + fall + 1e-12
    lasts = persists & (np.max(meets) < 0.5)
    restitution = inputs.contact.restitution

    def biased(active: Any, gap: Any, before: Any, after: Any, lead: Any) -> tuple[Any, ...]:
        lead = np.where(lasts, lead, 0.0)
        closing = np.minimum(np.maximum(gap, 0.0) / h, FAR * scale)
        rebound = np.array(0.0)
        if scene.bounces:
            leaves, separates = rebound_at_start(closing, before[2], after[2], restitution)
            impact = (before[2] < -SLOW * fall) & (gap + h * (after[2] + lead[2]) <= 0.0)
            impact = impact & (restitution > 0.0) & separates & (active > 0.5)
            rebound = np.where(impact, np.minimum(-leaves, closing), 0.0)
            closing = np.where(impact, rebound, closing)
        bias = lead + np.stack([0.0, 0.0, closing])
        apart = np.stack([0.0, 0.0, scale])  # slots without a contact do not move
        return np.where(active > 0.5, bias, apart), np.stack([0.0, 0.0, rebound]), 0.5 * (before + after)

    bias, rebound, middle = map_items(biased, slots.active, slots.gap, before, after, lead)
    return BodySystem(tables, poses, slots, rows, free, bias, rebound, middle, start, scale)


def _reach(tables: Tables, v: Any, fall: Any, h: Any) -> Reach:
    """How far the points of bodies may move in a step: twice as far as their velocities say."""
    extent = numpy.zeros(tables.bodies.count + 1)
    smallest = numpy.inf
    tables_of_shapes = [some.shapes for some in tables.ground]
    tables_of_shapes += [shapes for some in tables.pairs for shapes in (some.first, some.second)]
    for shapes in tables_of_shapes:
        sizes = numpy.linalg.norm(shapes.core, axis=1) + shapes.radius
        for body, p, size in zip(shapes.body.astype(int), shapes.p, sizes, strict=True):
            if body < tables.bodies.count:
                extent[body] = max(extent[body], float(numpy.linalg.norm(p - tables.bodies.com[body]) + size))
                smallest = min(smallest, float(size))

    def distance(v: Any, extent: Any) -> Any:
        return 2.0 * h * (np.sqrt(v[:3] @ v[:3]) + extent * np.sqrt(v[3:] @ v[3:]) + fall)

    return Reach(map_items(distance, v, extent), _MARGIN * smallest)


def solve_system(scene: Scene, system: BodySystem, inputs: StepInputs) -> tuple[Impulses, Any]:
    """Stage 5: impulses (3 slots,) with as much restitution as adds no energy, and velocities (bodies + 1, 6)."""
    rows, slots = system.rows, len(system.slots.gap)
    none, ground = np.zeros(slots), inputs.contact
    friction = contact_coefficients(scene, system.slots.candidate, (ground.friction + none, none, none))["friction"]

    def solve(bias: Any, start: Any) -> tuple[Solved, Any]:
        velocity = push_all(rows, system.velocity, start)
        return solve_bodies(rows, bias, friction, velocity, start, system.scale, inputs.solver)

    if not scene.bounces:
        solution, velocity = solve(system.bias, system.start)
        return Impulses(solution.impulse, solution.residual, solution.iterations, solution.done), velocity

    def solve_flat(bias: Any, start: Any) -> Solved:
        solution, _ = solve(bias.reshape(-1, 3), start.reshape(-1, 3))
        return solution._replace(impulse=solution.impulse.reshape(-1))

    def respond(impulse: Any) -> Any:
        still = np.zeros(system.velocity.shape)
        return read_all(rows, push_all(rows, still, impulse.reshape(-1, 3))).reshape(-1)

    zero = np.array(0.0)
    full = system.bias.reshape(-1)
    plastic = map_items(lambda b, r: b - r, system.bias, system.rebound).reshape(-1)
    struck = np.min(system.rebound[:, 2]) < 0.0
    empty = Solved(system.start.reshape(-1), zero, zero, np.array(True))
    solution, fraction = solve_without_gain(
        solve_flat, respond, system.middle.reshape(-1), struck, full, plastic, empty, GAIN * system.scale
    )
    velocity = push_all(rows, system.velocity, solution.impulse.reshape(-1, 3))
    return Impulses(solution.impulse, solution.residual, solution.iterations, solution.done, fraction), velocity


def step_bodies(scene: Scene, last: StepResult, inputs: StepInputs) -> StepResult:
    """One step of time."""
    state, h = last.state, inputs.time_step
    system = assemble_bodies(scene, state, inputs)
    impulses, velocity = solve_system(scene, system, inputs)
    shift = correct_penetration(system.rows, system.slots, velocity, h)
    bodies = system.tables.bodies
    flight = fly_bodies(bodies, state.q.reshape(-1, 7), system.poses, velocity, shift, h)
    return StepResult(
        StepState(
            flight.q.reshape(-1),
            flight.v.reshape(-1),
            impulses.impulse.reshape(-1),
            system.slots.candidate,
            state.time + h,
            state.activation,
        ),
        impulses.residual,
        last.iterations + impulses.iterations,
        last.overflow | system.slots.overflow,
        last.unsolved | ~impulses.converged,
        last.omitted,
        last.clipped,
        np.array(0.0),
        last.too_long | (flight.substeps > float(SUBSTEPS)),
        last.energy_limited | (impulses.restitution_fraction < 1.0),
    )
