"""A step of robots among free bodies: trees in straight-line code, bodies and contacts in loops.

    kinematics and forces of robots → broad and narrow phase → rows → v_f → impulses → penetrations → flight

The scheme is that of `stages` for robots and that of `step` for free bodies. Rows are in three groups, swept one after
the other: contacts of free bodies, contacts of robots, and rows of joints. Which servos are at their limits is known
only at the end of a step, so a step with wrong guesses is repeated, as in `stages.pipeline`.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import map as map_items
from delassus.compiler.tracing.flow.control import scan_first, while_loop
from delassus.dynamics.kinematics.kinematics import world_poses
from delassus.dynamics.mass.crba import mass_matrix
from delassus.model.links import links_of
from delassus.step.actuators.drive import drive, limited_servos
from delassus.step.actuators.external import push_frames
from delassus.step.actuators.forces import Forces, predict_servo_modes, servo_modes
from delassus.step.bodies.collide import Slots, collide_bodies, match_contacts, place_shapes
from delassus.step.bodies.correct import correct_penetration
from delassus.step.bodies.motion import Poses, fly_bodies, numbers_to, poses_of, world_velocities
from delassus.step.bodies.robot_dynamics import Robots, robots_at
from delassus.step.bodies.robot_motion import RobotImpulses, move_robots
from delassus.step.bodies.robot_rows import JointRows, LinkRows, joint_rows, link_rows
from delassus.step.bodies.robots import robot_scene, scene_parts
from delassus.step.bodies.rolling import rolling_velocity
from delassus.step.bodies.rows import RowGroup, SceneVelocity, SweepRows, contact_rows, push_all
from delassus.step.bodies.step import (
    BodySystem,
    ContactLaws,
    ContactSet,
    Extremes,
    contact_items,
    fall_freely,
    measure_speeds,
    motion_bounds,
    push_bodies,
    record_contacts,
    solve_system,
)
from delassus.step.bodies.tables import Tables, tables_of
from delassus.step.impacts.detection import SLOW, fall_speed
from delassus.step.scene import Scene
from delassus.step.scheme.free_rotation import SUBSTEPS
from delassus.step.stages.assemble import FAR
from delassus.step.stages.collide import ground_surface
from delassus.step.stages.pipeline import LONGEST_TURN, take_activated_step
from delassus.step.stages.types import StepInputs, StepResult, StepState

_SERVO_GUESSES: Final = 8
"""Largest number of attempts to find the active limits of servos."""


class RobotStep(NamedTuple):
    """A step of robots and bodies before its impulses are known: the system of all rows, the robots, the tables of
    contacts of each group, h c (nv,), the impulse of velocity products, and velocities of bodies (bodies + 1, 6) at the
    beginning."""

    system: BodySystem
    robots: Robots
    tables: tuple[Tables, ...]
    products: Any
    before: Any


def scene_poses(scene: Scene, q: Any) -> Poses:
    """Poses of all bodies, the world and links for a configuration (nq,)."""
    parts, tables = scene_parts(scene), tables_of(scene)
    poses = poses_of(tables.bodies, q[list(parts.body_q)].reshape(-1, 7), numbers_to(tables.bodies.n + 1))
    robot = robot_scene(scene)
    if robot is None:
        return poses
    world = world_poses(links_of(robot.model), q[list(parts.robot_q)])
    return with_links(poses, world)


def with_links(poses: Poses, links: Any) -> Poses:
    """Poses of bodies and the world, followed by those of links (R, p); links have no mass of their own."""
    R, p = np.stack([R for R, _ in links]), np.stack([p for _, p in links])
    none, first = np.zeros((3, 3)), float(len(poses.p))

    def pose(k: Any) -> tuple[Any, ...]:
        is_link, link = k > first - 0.5, k - first
        own = np.take(R, link, axis=0), np.take(p, link, axis=0)
        body = [np.take(x, k, axis=0) for x in poses]
        both = zip((own[0], own[1], own[1], none), body, strict=True)
        return tuple(np.where(is_link, one, other) for one, other in both)

    return Poses(*map_items(pose, numbers_to(len(poses.p) + len(links))))


def robot_state(scene: Scene, robot: Scene, state: StepState) -> StepState:
    """The part of a state that is that of robots; impulses are those of their own rows."""
    parts = scene_parts(scene)
    impulse = state.impulse[3 * scene.full_slots :]
    return StepState(
        state.q[list(parts.robot_q)],
        state.v[list(parts.robot_v)],
        impulse,
        np.zeros(0),
        state.time,
        state.activation,
    )


def robot_forces(scene: Scene, robot: Scene, state: StepState, inputs: StepInputs, modes: Any) -> Forces:
    """Forces of actuators, springs and dampers, and wrenches on frames of robots."""
    h, model = inputs.time_step, robot.model
    forces = drive(model, robot.actuators, state.q, state.v, inputs.control, h, modes)
    if modes is None and forces.servos is not None and _drive_single_joints(robot):
        guess = predict_servo_modes(forces.servos, mass_matrix(model, state.q), h)
        forces = drive(model, robot.actuators, state.q, state.v, inputs.control, h, guess)
    if scene.pushed and inputs.wrench is not None:
        forces = push_frames(model, scene.pushed, state.q, inputs.wrench, forces)
    return forces


def _drive_single_joints(robot: Scene) -> bool:
    return all(robot.actuators[k].drives == "joint" for k in limited_servos(robot.actuators))


def assemble_step(scene: Scene, state: StepState, inputs: StepInputs, modes: Any = None) -> RobotStep:
    """Stages 1 to 4 of a step; `modes` are those of servos, None for a guess."""
    parts, robot, every, h = scene_parts(scene), robot_scene(scene), tables_of(scene), inputs.time_step
    assert robot is not None
    n, fall, surface = every.bodies.n, fall_speed(scene.model, h), ground_surface(scene, inputs.ground)
    own = robot_state(scene, robot, state)
    robots = robots_at(robot, own, robot_forces(scene, robot, own, inputs, modes), h)
    q, numbers = state.q[list(parts.body_q)].reshape(n, 7), numbers_to(n + 1)
    bodies = poses_of(every.bodies, q, numbers)
    v = world_velocities(every.bodies, bodies, state.v[list(parts.body_v)].reshape(n, 6), numbers)
    free = push_bodies(scene, bodies, state.q, inputs, fall_freely(scene, v, h, numbers))
    poses = with_links(bodies, robots.kinematics.poses)
    contacts, tables = _find_contacts(scene, state, robots, poses, v, surface, fall)
    joints, bounds = _joint_laws(robots, inputs)
    start = state.impulse[3 * every.slots + robot.mechanism.m :][:, None]

    kicked = SceneVelocity(free, own.v + robots.kick)
    guess = _push(contacts, joints, start, kicked)
    before = SceneVelocity(v, own.v)
    extremes = _extremes(contacts, before, kicked, guess, fall, h)
    leaves = _joints_leave(robots, joints, start, guess, fall)
    persists = (extremes.leaves < 0.5) & ~leaves
    response = guess.joints - kicked.joints
    v_free, products = _free_velocity(scene, robots, np.where(persists, response, 0.0), inputs)
    after = SceneVelocity(free, v_free)
    guess = SceneVelocity(guess.bodies, v_free + response)
    if scene.bounces:
        before = SceneVelocity(v, np.where(inputs.contact.restitution > 0.0, v_free - robots.kick, own.v))
    measured = [measure_speeds(one, before, after, guess, fall, h) for one in contacts]
    extremes = _merge([extremes for extremes, _ in measured])
    speeds = [np.abs(robots.others @ x) for x in (before.joints, after.joints)]
    most = np.max(np.concatenate([np.stack([extremes.speed]), *speeds]))
    scale, lasts = most + fall + 1e-12, persists & (extremes.meets < 0.5)

    moving = map_items(
        lambda k: np.where(persists, np.take(guess.bodies, k, axis=0), np.take(free, k, axis=0)), numbers
    )
    groups, rebounds, middles = [], [], []
    for one, table, (_, u) in zip(contacts, tables, measured, strict=True):
        lead = None
        if one is contacts[0] and every.slots > every.robot_slots:
            lead = rolling_velocity(table, q, bodies, numbers, one.slots, moving, surface, h)
        laws = ContactLaws(scale, fall, lasts, lead)
        items, rebound, middle = contact_items(scene, inputs, one, u, laws)
        groups.append(RowGroup(one.slots.count, items, one.slots.gap))
        rebounds.append(rebound)
        middles.append(middle)
    starts = [one.start for one in contacts]
    deepest = extremes.gap
    if len(joints.normal_step):
        groups.append(_joint_group(robots, joints, bounds, scale, h))
        rebounds.append(None)
        middles.append((robots.others @ (0.5 * (before.joints + after.joints)))[:, None])
        starts.append(start)
        deepest = np.minimum(deepest, np.min(robots.rows.stop_gap)) if len(robots.rows.stop_gap) else deepest
    system = BodySystem(
        every,
        poses,
        tuple(contacts),
        tuple(groups),
        after,
        guess,
        tuple(starts),
        tuple(rebounds),
        tuple(middles),
        scale,
        deepest,
    )
    return RobotStep(system, robots, tuple(tables), products, v)


def _find_contacts(
    scene: Scene, state: StepState, robots: Robots, poses: Poses, v: Any, surface: Any, fall: Any
) -> tuple[list[ContactSet], list[Tables]]:
    """The contacts of free bodies, and those of robots; bodies have the velocities v (bodies + 1, 6)."""
    every, h = tables_of(scene), robots.time_step
    links = np.stack([_fastest_twist(robots, k) for k in range(len(robots.kinematics.tree.links))])
    count, first = every.bodies.n + 1 + len(links), float(every.bodies.n + 1)
    numbers = numbers_to(count)
    twists = map_items(
        lambda k: np.where(k > first - 0.5, np.take(links, k - first, axis=0), np.take(v, k, axis=0)), numbers
    )
    shapes = place_shapes(every, poses, motion_bounds(every, twists, fall, h, numbers))
    contacts, tables, free = [], [], every.slots - every.robot_slots
    impulse = state.impulse[: 3 * every.slots].reshape(-1, 3)
    for on_robots, at in ((False, slice(0, free)), (True, slice(free, every.slots))):
        table = every.of_robots() if on_robots else every.of_bodies()
        if not table.slots:
            continue
        slots = collide_bodies(table, shapes, surface)
        match = match_contacts(table, slots, state.contact[at])
        found: tuple[Any, Any] = (
            link_rows(table.bodies, poses, robots.reach, robots.W, slots, match, impulse[at])
            if on_robots
            else contact_rows(table.bodies, poses, slots, match, impulse[at])
        )
        contacts.append(ContactSet(slots, *found))
        tables.append(table)
    return contacts, tables


def _fastest_twist(robots: Robots, link: int) -> Any:
    """(6,) in magnitude, the larger of the velocities of a link's origin before and after the forces of a step."""
    arm = robots.kinematics.poses[link][1] - robots.reach.center
    most = np.zeros(6)
    for v in (robots.state.v, robots.state.v + robots.kick):
        twist = robots.reach.twist(link, v)
        at = np.concatenate([twist[:3] + np.cross(twist[3:], arm), twist[3:]])
        most = np.maximum(most, np.abs(at))
    return most


def _joint_laws(robots: Robots, inputs: StepInputs) -> tuple[JointRows, tuple[Any, Any]]:
    """Rows of one-sided constraints, joint limits and joint friction, and their least and largest impulses."""
    scene = robots.scene
    rows, stops = joint_rows(robots.others, robots.W), len(scene.stop_rows)
    bounds = np.array(scene.friction_bounds) * inputs.time_step
    lower = np.concatenate([np.zeros(stops), -bounds])
    return rows, (lower, np.concatenate([np.full(stops, np.inf), bounds]))


def _joint_group(robots: Robots, rows: JointRows, bounds: tuple[Any, Any], scale: Any, h: Any) -> RowGroup:
    """The rows of joints: gaps of limits may close, friction has none."""
    frictions = len(robots.others) - len(robots.rows.stop_gap)
    closing = np.minimum(np.maximum(robots.rows.stop_gap, 0.0) / h, FAR * scale)
    bias = np.concatenate([closing, np.zeros(frictions)])
    gap = np.concatenate([robots.rows.stop_gap, np.full(frictions, np.inf)])
    return RowGroup(np.array(float(len(bias))), SweepRows(rows, bias[:, None], bounds), gap)


def _push(contacts: list[ContactSet], joints: JointRows, start: Any, velocity: SceneVelocity) -> SceneVelocity:
    """Velocities after the initial impulses of all groups."""
    for slots, rows, impulse in contacts:
        velocity = push_all(slots.count, rows, velocity, impulse)
    return velocity._replace(joints=velocity.joints + start[:, 0] @ joints.response) if len(start) else velocity


def _extremes(
    contacts: list[ContactSet], v: SceneVelocity, free: SceneVelocity, guess: SceneVelocity, fall: Any, h: Any
) -> Extremes:
    return _merge([measure_speeds(one, v, free, guess, fall, h)[0] for one in contacts])


def _merge(extremes: list[Extremes]) -> Extremes:
    """Those of all groups."""
    zero = np.array(0.0)
    kinds = (np.maximum, np.minimum, np.maximum, np.maximum)
    columns = zip(*(extremes or [Extremes(zero, zero, zero, zero)]), strict=True)
    return Extremes(*(reduce(kind, column) for kind, column in zip(kinds, columns, strict=True)))


def _joints_leave(robots: Robots, rows: JointRows, start: Any, guess: SceneVelocity, fall: Any) -> Any:
    """Whether a limit that had an impulse would leave with it."""
    stops = len(robots.rows.stop_gap)
    if not stops:
        return np.array(False)
    u = robots.others[:stops] @ guess.joints
    return np.any((start[:stops, 0] > 0.0) & (u > SLOW * fall))


def _free_velocity(scene: Scene, robots: Robots, response: Any, inputs: StepInputs) -> tuple[Any, Any]:
    """Velocities (nv,) of robots without impulses of contacts and joints, which change them by `response` (nv,) when
    velocity products of the middle are taken; and h c (nv,)."""
    v = robots.state.v
    free, products = robots.free_velocity(v + 0.5 * (robots.kick + response))
    if not scene.bounces:
        return free, products
    # A second estimate of the middle: what never comes to rest accumulates the error of one.
    second = robots.free_velocity(0.5 * (v + free + response))
    bounces = inputs.contact.restitution > 0.0
    return np.where(bounces, second[0], free), np.where(bounces, second[1], products)


class _Guess(NamedTuple):
    """A step, the servo modes to try next, whether the previous ones were wrong, and the number of attempts."""

    result: StepResult
    modes: Any
    wrong: Any
    count: Any


def take_robot_step(scene: Scene, last: StepResult, inputs: StepInputs) -> StepResult:
    """One step; repeated while servos are at other limits than assumed."""
    robot = robot_scene(scene)
    assert robot is not None
    if not limited_servos(robot.actuators):
        return _try_step(scene, last, inputs, None)[0]

    def try_again(guess: _Guess) -> _Guess:
        result, modes = _try_step(scene, last, inputs, guess.modes)
        wrong = np.any(modes != guess.modes)
        # From one limit to the other it goes by the range between them.
        return _Guess(result, np.where(modes * guess.modes < 0.0, 0.0, modes), wrong, guess.count + 1.0)

    modes = robot_forces(scene, robot, robot_state(scene, robot, last.state), inputs, None).modes
    first, most = _Guess(last, modes, np.array(True), np.array(0.0)), float(_SERVO_GUESSES)
    return while_loop(lambda guess: guess.wrong & (guess.count < most), try_again, first, _SERVO_GUESSES).result


def step_with_robots(scene: Scene, last: StepResult, inputs: StepInputs) -> StepResult:
    """One step of time, in substeps where joints are fast."""
    return take_activated_step(scene, last, inputs, take_robot_step)


def _try_step(scene: Scene, last: StepResult, inputs: StepInputs, modes: Any) -> tuple[StepResult, Any]:
    """One step with assumed modes of servos, and the modes at its end."""
    state, h, parts, every = last.state, inputs.time_step, scene_parts(scene), tables_of(scene)
    step = assemble_step(scene, state, inputs, modes)
    system, robots = step.system, step.robots
    impulses, velocity = solve_system(scene, system, inputs)
    shift = correct_penetration(system.groups, system.deepest, velocity, h)
    flight = fly_bodies(
        every.bodies, state.q[list(parts.body_q)].reshape(-1, 7), system.poses, velocity.bodies, shift.bodies, h
    )
    on_robots = _robot_impulses(step, impulses.impulse, velocity)
    motion = move_robots(robots, velocity.joints, step.products, on_robots, shift.joints)
    modes = servo_modes(robots.forces, velocity.joints)
    clipped = robots.forces.clipped
    if len(modes):
        clipped = clipped - np.sum(np.abs(robots.forces.modes)) + np.sum(np.abs(modes))
    candidate, impulse = _record(step, impulses.impulse, on_robots)
    q, v = np.array(state.q), np.array(state.v)
    q[list(parts.body_q)], v[list(parts.body_v)] = flight.q.reshape(-1), flight.v.reshape(-1)
    q[list(parts.robot_q)], v[list(parts.robot_v)] = motion.q, motion.v
    overflow = reduce(np.logical_or, [one.slots.overflow for one in system.contacts], robots.rows.overflow)
    substeps = np.maximum(flight.substeps, motion.substeps)
    result = StepResult(
        StepState(q, v, impulse, candidate, state.time + h, state.activation),
        impulses.residual,
        last.iterations + impulses.iterations,
        last.overflow | overflow,
        last.unsolved | ~impulses.converged,
        last.omitted,
        last.clipped | (clipped > 0.0),
        motion.angle,
        last.too_long | (motion.angle > LONGEST_TURN) | (substeps > float(SUBSTEPS)),
        last.energy_limited | (impulses.restitution_fraction < 1.0),
    )
    return result, modes


def _robot_impulses(step: RobotStep, impulse: Any, velocity: SceneVelocity) -> RobotImpulses:
    """Sums over all contacts of robots and all rows of joints."""
    robots, scene = step.robots, step.robots.scene
    stops, nv = len(scene.stop_rows), scene.nv
    sums = RobotImpulses(
        np.zeros(nv),
        np.zeros(nv),
        np.zeros(len(robots.kinematics.tree.links)),
        np.array(0.0),
        np.zeros(len(step.before)),
    )
    twice = step.before + velocity.bodies
    for k, (group, own) in enumerate(zip(step.system.groups, impulse, strict=True)):
        rows = group.items.rows
        if isinstance(rows, JointRows):
            pushing = sums.pushing + own[:stops, 0] @ robots.others[:stops]
            friction = own[stops:, 0] @ robots.others[stops:]
            sums = sums._replace(pushing=pushing, friction=friction)
        elif isinstance(rows, LinkRows):
            sums = _add_contacts(sums, step.system.contacts[k].slots, rows, own, twice)
    return sums


def _add_contacts(sums: RobotImpulses, slots: Slots, rows: LinkRows, impulse: Any, twice: Any) -> RobotImpulses:
    """The sums with those over contacts; `twice` (bodies + 1, 6) are velocities of bodies before and after, added."""
    world = float(len(twice) - 1)

    def visit(carry: Any, item: Any) -> tuple[Any, None]:
        (sums, k), (row, first, second) = carry, item
        own = np.where(k < slots.count, np.take(impulse, k, axis=0), 0.0)
        grounded, work, push = sums.grounded, sums.body_work, row.contact.axes @ own
        for one, other in ((first, second), (second, first)):
            grounded = np.add_at(grounded, np.where(other == world, one - world - 1.0, -1.0), own[2])
        for body, arm, sign in ((first, row.contact.arm1, 0.5), (second, row.contact.arm2, -0.5)):
            twist = np.take(twice, np.minimum(body, world), axis=0)
            done = sign * (push @ (twist[:3] + np.cross(twist[3:], arm)))
            work = np.add_at(work, np.where(body < world, body, -1.0), done)
        pushing, between = sums.pushing + own @ row.J, sums.between + own[2]
        return (sums._replace(pushing=pushing, grounded=grounded, between=between, body_work=work), k + 1.0), None

    items = (rows, slots.first, slots.second)
    return scan_first(slots.count, visit, (sums, np.array(0.0)), items)[0][0]


def _record(step: RobotStep, impulse: Any, on_robots: RobotImpulses) -> tuple[Any, Any]:
    """Candidates (slots,) and impulses (m,) that a state keeps: contacts, bilateral constraints, limits, friction."""
    candidates, impulses = [], []
    system, robots = step.system, step.robots
    for table, contact, own in zip(step.tables, system.contacts, impulse, strict=False):
        candidate, pushed = record_contacts(table, contact.slots, own)
        candidates.append(candidate)
        impulses.append(pushed.reshape(-1))
    if robots.loops is not None:
        force = robots.time_step * (robots.forces.force + robots.weight) - step.products
        push = force + on_robots.pushing + on_robots.friction
        impulses.append(robots.closing_impulses(robots.state.v + robots.inverse @ push))
    if len(impulse) > len(system.contacts):
        impulses.append(impulse[-1][:, 0])
    return np.concatenate(candidates), np.concatenate(impulses)
