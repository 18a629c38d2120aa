"""One control period of a robot on the ground: `substeps` steps of time in one kernel.

A step h from (q, v), with M̂ = M + diag(h d + h² k) for damping d and stiffness k of joints and servos:

    v_f = v + h M̂⁻¹ (τ - c)                       what the velocity would be without contacts, c at the middle
    G = J M̂⁻¹ Jᵀ,   g = J v_f + what rows are held to
    λ, σ = G λ + g                                 the contact problem, started from the impulses of the step before
    v⁺ = v_f + M̂⁻¹ Jᵀ λ
    q⁺ = q ⊕ (h v⁺ + δ)                            δ takes penetrations back, without any velocity
    q⁺, v⁺ projected                               where loops are closed

A gap may close and not more: J v⁺ + gap/h ≥ 0, with the J of the step's middle where a free body rolls. A contact that
would be passed faster than gravity accelerates in two steps strikes: it leaves with e times the velocity that it came
with, or with less where friction would make that gain energy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.host.kernel import Floats, Kernel, kernel
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import while_loop
from delassus.constrained.elimination.tree_factor import tree_factor
from delassus.constrained.projection.project import project
from delassus.dynamics.forces.rnea import newton_euler
from delassus.dynamics.kinematics.kinematics import world_poses
from delassus.dynamics.mass.factor import forward, substitute
from delassus.dynamics.tree.check import check_inertias
from delassus.dynamics.tree.poses import mirrored
from delassus.model.links import links_of
from delassus.simulation.actuation.actuators import drive
from delassus.simulation.step.contacts import GroundNumbers, all_touches, warm_start
from delassus.simulation.step.rows import SLOP, StepRows, missed, step_rows
from delassus.simulation.step.solve import Limits, Solved, solved
from delassus.simulation.step.world import World
from delassus.stepping.marks import Mark
from delassus.stepping.scheme.flying import moved, turning

TOLERANCE: Final = 1e-8
"""The residual to which contacts are solved, as a share of the velocities that they have without impulses."""

QUICKLY: Final = 4.0
"""Iterations of the contact solve after which an item of a batch is left to a second call, with others like it."""

PATIENCE: Final = 150.0
"""Iterations at most."""

HARD: Final = 1024.0
"""What a kernel gives for an item that its patience was not enough for: it keeps its state."""

MISSED: Final = 2048.0
"""The same for an item in which something that was left out of its world would matter."""

_GIVEN_BACK: Final = 0.2
"""The share of a penetration that a step takes back."""

_GAIN: Final = 1e-8
"""Of velocities times impulses: what counts as energy that strikes have gained."""

_SHARES: Final = 4
"""The restitution of strikes that would gain energy is lowered in so many steps, to nothing at last."""

_FAR: Final = 10.0
"""Gaps that close at more than so many times the velocities of a step count as closing at that: they stay open."""

GROUND_INPUTS: Final = {"friction": "()", "restitution": "()", "normal": "(3)", "height": "()"}
INPUTS: Final = {**GROUND_INPUTS, "tolerance": "()", "patience": "()"}


class Given(NamedTuple):
    """What is the same in all steps of a control period."""

    control: Any
    h: Any
    ground: GroundNumbers
    friction: Any
    restitution: Any
    limits: Limits = Limits(TOLERANCE, PATIENCE)


class Moved(NamedTuple):
    """A state after a step, with the impulses and candidates of the contacts, and how the solve ended.

    Impulses and candidates are those of the whole world; `again` says that a row which was left out would matter.
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


class Problem(NamedTuple):
    """The contact problem of a step: J, G, g, what restitution has in g, velocities of rows before the step and after
    it without impulses, their scale, the free velocity, impulses to start from, how the velocity responds to them."""

    rows: StepRows
    G: Any
    g: Any
    thrown: Any
    before: Any
    after: Any
    scale: Any
    free: Any
    start: Any
    response: Callable[[Any], Any]
    clipped: Any


def problem_of(world: World, last: Moved, given: Given, time: Any) -> Problem:
    """The contact problem of a step of time."""
    model, h, q, v = world.model, given.h, last.q, last.v
    poses = world_poses(links_of(model), q)
    rows = step_rows(world, q, v, poses, given.ground, h, time)
    driven = drive(model, world.actuators, q, v, given.control, h)
    factor = tree_factor(model, q, rows.J, added=driven.added)

    def solve(force: Any) -> Any:
        return substitute(factor.above, factor.U, factor.D, force)

    def response(impulse: Any) -> Any:
        return forward(factor.above, factor.U, factor.Y.T @ impulse)  # M̂⁻¹ Jᵀ λ

    # Gyroscopic forces at the middle of the step: those of its beginning would spin bodies up. The middle is that of a
    # step with the impulses of the one before, so what rests has none, and what rolls keeps its energy.
    start = warm_start(world, rows.touching.number, last.contact, last.impulse) if world.m else last.impulse
    change = h * solve(driven.force - newton_euler(model, q, v, turning(model, v), None))
    pushing, lasts = world.pushing, np.array(True)
    if world.m:
        pushed = response(start)
        # Impulses of a strike are no guide to the step after it: what they pushed would leave.
        apart = np.where(start[pushing] > 0.0, rows.J[pushing] @ (v + change + pushed), 0.0)
        lasts = np.all(apart <= 2.0 * _pull(world, h)) if pushing else lasts
        change = change + np.where(lasts, pushed, 0.0)
    middle = v + 0.5 * change
    free = v + h * solve(driven.force - newton_euler(model, q, middle, turning(model, middle), None))
    before, after = rows.J @ v, rows.J @ free
    g, thrown, scale = _demanded(world, rows, before, after, start, lasts, given)
    G = mirrored(factor.delassus)
    return Problem(rows, G, g, thrown, before, after, scale, free, start, response, driven.clipped)


def _pull(world: World, h: Any) -> Any:
    """The velocity [m/s] that gravity gives in a step."""
    return h * float(numpy.linalg.norm(world.model.gravity))


def _demanded(
    world: World, rows: StepRows, before: Any, after: Any, start: Any, lasts: Any, given: Given
) -> tuple[Any, Any, Any]:
    """What rows (m,) have beyond what they must not fall below, restitution's part in it, the scale of velocities.

    Contacts that last, of which there were all in the step before, are held to the velocities of the step's middle;
    a strike would gain energy from that.
    """
    if not world.m:
        return after, after, np.array(1.0)
    h, loops, slots = given.h, world.mechanism.m, world.slots
    pull = _pull(world, h)
    scale = np.maximum(np.max(np.abs(after)), np.max(np.abs(before))) + pull + 1e-12
    far = _FAR * scale
    g, thrown = np.array(after), np.zeros(world.m)
    if slots:
        normals = slice(2, 3 * slots, 3)
        met = (start[normals] <= 0.0) & (before[normals] < -2.0 * pull)
        met = met & (rows.touching.gap + h * after[normals] <= 0.0)
        g[: 3 * slots] = after[: 3 * slots] + np.where(lasts & ~np.any(met), rows.touching.lead, 0.0)
    for k in range(slots):
        gap, n = rows.touching.gap[k], 3 * k + 2
        closing = np.minimum(np.maximum(gap, 0.0) / h, far)
        if world.bounces:
            strikes = (before[n] < -2.0 * pull) & (gap + h * g[n] <= 0.0) & (given.restitution > 0.0)
            thrown[n] = np.where(strikes, given.restitution * before[n], 0.0)
            closing = np.where(strikes, thrown[n], closing)
        g[n] = g[n] + closing
    at = slice(3 * slots, 3 * slots + loops)
    if loops:
        g[at] = after[at] - rows.asked
    ends = slice(at.stop, at.stop + world.ends)
    if world.ends:
        g[ends] = after[ends] + np.minimum(np.maximum(rows.stop_gap, 0.0) / h, far)
    return g, thrown, scale


def one_step(world: World, last: Moved, given: Given) -> Moved:
    """A step of time."""
    h, time = given.h, last.time + given.h
    problem = problem_of(world, last, given, time)
    rows, contact = problem.rows, problem.rows.touching
    v, impulse = problem.free, np.zeros(world.m)
    residual, count, unsolved = np.array(0.0), np.array(0.0), np.array(0.0)
    if world.m:
        impulse, residual, count, done = _impulses(world, problem, given)
        unsolved = np.where(done, 0.0, 1.0)
        v = problem.free + problem.response(impulse)
    again = np.where(missed(world, last.q, v, h, contact), 1.0, last.again)
    q, v = moved(world.model, last.q, v, h * v + _given_back(world, problem, v, h))
    if world.mechanism.m:
        q, v = project(world.mechanism, q, v, time=time)
    every, number = impulse, contact.number
    if world.usual is not None:
        every, number = np.zeros(world.whole.m), numpy.array(world.numbers, float)
        every[list(world.own_rows)] = impulse
    return Moved(
        q,
        v,
        every,
        number,
        time,
        residual,
        last.iterations + count,
        np.where(contact.more | rows.more_stops, 1.0, last.many),
        np.maximum(last.unsolved, unsolved),
        again,
        last.clipped + problem.clipped,
    )


def _impulses(world: World, problem: Problem, given: Given) -> Solved:
    """What solves the contact problem; where strikes would gain energy, one in which they throw back less."""
    numbers: dict[str, Any] = {}
    if world.slots:
        numbers["friction"] = given.friction + np.zeros(world.slots)
    if world.dry:
        dry = np.array([bound for _, bound in world.dry]) * given.h
        numbers |= {"lower": -dry, "upper": dry}
    if not world.bounces:
        return solved(world.layout, problem.G, problem.g, numbers, problem.start, problem.scale, given.limits)

    def throw(carry: Any) -> Any:
        share, start, count = carry[0], carry[1], carry[3]
        g = problem.g - (1.0 - share) * problem.thrown
        found = solved(world.layout, problem.G, g, numbers, start, problem.scale, given.limits)
        gained = found.impulse @ (problem.before + problem.after + problem.G @ found.impulse)  # twice their work
        fine = gained <= _GAIN * problem.scale * np.sum(np.abs(found.impulse))
        fine = fine | np.all(problem.thrown == 0.0)
        ended = np.where(fine | (share < 0.5 / _SHARES), 1.0, 0.0)
        done = np.where(found.done, 1.0, 0.0)
        return share - 1.0 / _SHARES, found.impulse, found.residual, count + found.iterations, done, ended

    zero = np.array(0.0)
    first = (np.array(1.0), problem.start, zero, zero, zero, zero)
    last = while_loop(lambda carry: carry[5] < 0.5, throw, first, _SHARES + 1)
    return Solved(last[1], last[2], last[3], last[4] > 0.5)


def _given_back(world: World, problem: Problem, v: Any, h: Any) -> Any:
    """δ (nv,): the motion that takes a share of penetrations back and closes no gap; zero where nothing penetrates."""
    pushing = world.pushing
    if not pushing:
        return np.zeros(world.nv)
    gap = np.concatenate([problem.rows.touching.gap, problem.rows.stop_gap])

    def corrected(v: Any) -> Any:
        ahead = gap + h * (problem.rows.J[pushing] @ v)
        wanted = np.where(gap < -SLOP, -_GIVEN_BACK * gap, -np.maximum(ahead, 0.0))
        G = problem.G[pushing][:, pushing]

        def sweep(carry: Any) -> Any:
            push, made = np.array(carry[0]), carry[1]
            for k in range(len(pushing)):
                own = np.where(G[k, k] > 0.0, G[k, k], 1.0)
                push[k] = np.maximum(push[k] + (wanted[k] - G[k] @ push) / own, 0.0)
            return push, made + 1.0

        push, _ = while_loop(lambda carry: carry[1] < 10.0, sweep, (np.zeros(len(pushing)), np.array(0.0)), 10)
        whole = np.zeros(world.m)
        for k, row in enumerate(pushing):
            whole[row] = push[k]
        return problem.response(whole)

    return cond(np.min(gap) < -SLOP, corrected, np.zeros(world.nv), v)


def period(
    world: World,
    q: Any,
    v: Any,
    impulse: Any,
    contact: Any,
    time: Any,
    alive: Any,
    control: Any,
    given: Given,
) -> tuple[Any, ...]:
    """All steps of a control period; an item that is not alive, or whose numbers are none, keeps its state."""
    check_inertias(world.model)
    rows, slots = world.whole.m, world.all_slots
    zero, padding = np.array(0.0), (impulse[rows:], contact[slots:])
    control = control[: world.nu]
    first = _beginning(world, q, v, impulse, contact, time)
    usable = (alive > 0.5) & ~np.any(np.isnan(control)) if world.nu else alive > 0.5
    given = given._replace(control=np.where(usable, control, 0.0))
    if world.substeps == 1:
        last = one_step(world, first, given)
    else:
        carry = while_loop(
            lambda carry: carry[1] < float(world.substeps),
            lambda carry: (tuple(one_step(world, Moved(*carry[0]), given)), carry[1] + 1.0),
            (tuple(first), zero),
            world.substeps,
        )
        last = Moved(*carry[0])
    hard = (last.unsolved > 0.5) & (given.limits.patience < PATIENCE)
    good = usable & ~hard & (last.again < 0.5) & np.isfinite(np.sum(last.q) + np.sum(last.v) + np.sum(last.impulse))
    q, v, impulse, contact = (np.where(good, new, old) for new, old in zip(last[:4], first[:4], strict=True))
    impulse, contact = (np.concatenate(pair) for pair in zip((impulse, contact), padding, strict=True))
    mark = (
        np.where(good, 0.0, float(Mark.FROZEN))
        + float(Mark.MANY_CONTACTS) * last.many
        + float(Mark.UNSOLVED) * last.unsolved
        + np.where(last.clipped > 0.0, float(Mark.CLIPPED), 0.0)
    )
    left = np.where(hard, HARD, np.where(last.again > 0.5, MISSED, float(Mark.FROZEN)))
    mark = np.where(good, mark, np.where(usable, left, float(Mark.FROZEN)))
    return q, v, impulse, contact, last.residual, last.iterations, mark


def _beginning(world: World, q: Any, v: Any, impulse: Any, contact: Any, time: Any) -> Moved:
    zero = np.array(0.0)
    impulse, contact = impulse[: world.whole.m], contact[: world.all_slots]
    return Moved(q, v, impulse, contact, time, zero, zero, zero, zero, zero, zero)


SIGNATURE: Final = "(nq),(nv),(rows),(places),(),(),{control}()->(nq),(nv),(rows),(places),(),(),()"
"""Without rows, contacts or controls their arrays have one element, which means nothing: kernels need some."""
SHARED: Final = {"heights": "(field_rows,field_columns)"}


@kernel(SIGNATURE.format(control="(controls),"), inputs=INPUTS, shared=SHARED)
def simulate(
    world: World,
    q: Any,
    v: Any,
    impulse: Any,
    contact: Any,
    time: Any,
    alive: Any,
    control: Any,
    time_step: Any,
    *,
    friction: Any = 0.7,
    restitution: Any = 0.0,
    normal: Any = (0.0, 0.0, 1.0),
    height: Any = 0.0,
    tolerance: Any = TOLERANCE,
    patience: Any = PATIENCE,
    heights: Any = None,
) -> tuple[Floats, ...]:
    """q, v, impulses and contacts after a period; residual [m/s], iterations, `Mark`."""
    ground = GroundNumbers(np.array(normal), height, heights)
    given = Given(control, time_step, ground, friction, restitution, Limits(tolerance, patience))
    return period(world, q, v, impulse, contact, time, alive, control, given)


def simulate_with(policy: Callable[[Any, Any, Any], Any]) -> Kernel[..., Any]:
    """The same kernel with a traced function of time, q and v in place of the controls."""

    @kernel(SIGNATURE.format(control=""), inputs=INPUTS, shared=SHARED)
    def simulate_policy(
        world: World,
        q: Any,
        v: Any,
        impulse: Any,
        contact: Any,
        time: Any,
        alive: Any,
        time_step: Any,
        *,
        friction: Any = 0.7,
        restitution: Any = 0.0,
        normal: Any = (0.0, 0.0, 1.0),
        height: Any = 0.0,
        tolerance: Any = TOLERANCE,
        patience: Any = PATIENCE,
        heights: Any = None,
    ) -> tuple[Floats, ...]:
        """As `simulate`."""
        ground = GroundNumbers(np.array(normal), height, heights)
        given = Given(None, time_step, ground, friction, restitution, Limits(tolerance, patience))
        control = np.array(policy(time, q, v))
        return period(world, q, v, impulse, contact, time, alive, control, given)

    return simulate_policy


@kernel("(nq),(nv),(rows),(places),(controls),(),()->(m,m),(m)", inputs=GROUND_INPUTS, shared=SHARED)
def assemble_step(
    world: World,
    q: Any,
    v: Any,
    impulse: Any,
    contact: Any,
    control: Any,
    time: Any,
    time_step: Any,
    *,
    friction: Any = 0.7,
    restitution: Any = 0.0,
    normal: Any = (0.0, 0.0, 1.0),
    height: Any = 0.0,
    heights: Any = None,
) -> tuple[Floats, Floats]:
    """G (m, m) and g (m,) of the contact problem of the next step."""
    ground = GroundNumbers(np.array(normal), height, heights)
    given = Given(control[: world.nu], time_step, ground, friction, restitution)
    problem = problem_of(world, _beginning(world, q, v, impulse, contact, time), given, time + time_step)
    return problem.G, problem.g


@kernel("(nq)->(candidates),(candidates,3),(candidates,3)", inputs={"normal": "(3)", "height": "()"}, shared=SHARED)
def candidate_geometry(
    world: World, q: Any, *, normal: Any = (0.0, 0.0, 1.0), height: Any = 0.0, heights: Any = None
) -> tuple[Floats, Floats, Floats]:
    """Gaps (candidates,) [m], points and normals (candidates, 3) in the world."""
    tree = links_of(world.model)
    return all_touches(world, tree, world_poses(tree, q), GroundNumbers(np.array(normal), height, heights))
