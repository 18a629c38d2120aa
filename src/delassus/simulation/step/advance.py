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

from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import while_loop
from delassus.contact.solvers.elimination import solve_without_pivots
from delassus.dynamics.tree.check import check_inertias
from delassus.simulation.actuation.actuators import drive, limited_servos
from delassus.simulation.step.closing import closed
from delassus.simulation.step.friction import of_contacts
from delassus.simulation.step.problem import Given, Moved, Problem, beginning, problem_of
from delassus.simulation.step.rows import SLOP, missed, pushed_elsewhere
from delassus.simulation.step.solve import PATIENCE, Solved, solved
from delassus.simulation.step.world import World
from delassus.stepping.impacts.dissipation import Impact, solve_without_gain
from delassus.stepping.marks import Mark
from delassus.stepping.scheme.flying import moved

HARD: Final = 1024.0
"""What a kernel gives for an item that its patience was not enough for: it keeps its state."""

MISSED: Final = 2048.0
"""The same for an item in which something that was left out of its world would matter."""

_GIVEN_BACK: Final = 0.2
"""The share of a penetration that a step takes back."""

_SLOWLY: Final = 1.0
"""How fast a contact is taken out of the ground at most [m/s]: joints are turned, and δ is that of a small motion."""

_LEAN: Final = 1e-2
"""Added to how a contact gives way along its normal, as a share of how it does along its tangents: joints that hardly
move it out of the ground, or not at all, would be moved far."""

_REDUNDANT: Final = 1e-9
"""Added to how rows of loops give way, as a share of it: some may be redundant."""

_GAIN: Final = 1e-8
"""Of velocities times impulses: what counts as energy that strikes have gained."""

_GUESSES: Final = 8.0
"""How often it is guessed which servos are at their limits, at most."""


def one_step(world: World, last: Moved, given: Given) -> Moved:
    """A step of time.

    Which servos are at their limits is known at its end alone. In the usual world a step that has guessed wrong is left
    to the whole one, which tries again with what it has found.
    """
    if world.usual is not None or not limited_servos(world.actuators):
        return attempt(world, last, given)[0]

    def again(carry: Any) -> Any:
        made, modes = attempt(world, last, given, carry[1])
        wrong = np.where(np.any(modes != carry[1]), 1.0, 0.0)
        # From one limit to the other it goes by what is between them.
        return tuple(made), np.where(modes * carry[1] < 0.0, 0.0, modes), wrong, carry[3] + 1.0

    driven = drive(world.model, world.actuators, last.q, last.v, given.control, given.h)
    first = (tuple(last), driven.modes, np.array(1.0), np.array(0.0))
    return Moved(*while_loop(lambda c: (c[2] > 0.5) & (c[3] < _GUESSES), again, first, int(_GUESSES))[0])


def attempt(world: World, last: Moved, given: Given, modes: Any = None) -> tuple[Moved, Any]:
    """A step of time with guessed modes of servos, and what they are at its end."""
    h, time = given.h, last.time + given.h
    problem = problem_of(world, last, given, time, modes)
    rows, contact = problem.rows, problem.rows.touching
    v, impulse = problem.free, np.zeros(world.m)
    residual, count, unsolved = np.array(0.0), np.array(0.0), np.array(0.0)
    if world.m:
        (impulse, residual, count, done), _ = solve_impulses(world, problem, given)
        unsolved = np.where(done, 0.0, 1.0)
        v = problem.free + problem.response(impulse)
    found = problem.driven.modes_at(v)
    missing = missed(world, last.q, v, h, contact)
    if world.usual is not None:
        missing = missing | pushed_elsewhere(world, last.impulse, last.contact)
    if len(found) and world.usual is not None:
        missing = missing | np.any(found != problem.driven.modes)
    again = np.where(missing, 1.0, last.again)
    q, v = moved(world.model, last.q, v, h * v + _given_back(world, problem, v, h))
    if world.mechanism.m:
        q, v = closed(world, problem, q, v, time)
    every, number = impulse, contact.number
    if world.usual is not None:
        every, number = np.zeros(world.whole.m), numpy.array(world.numbers, float)
        every[list(world.own_rows)] = impulse
    made = Moved(
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
        last.clipped + problem.driven.clipped,
    )
    return made, found


def solve_impulses(world: World, problem: Problem, given: Given) -> tuple[Solved, Any]:
    """What solves the contact problem, and the share () of restitution in it: less than 1 where strikes would gain
    energy."""
    numbers: dict[str, Any] = {}
    if world.slots:
        none = np.zeros(world.slots)
        ground = (given.friction + none, given.torsional + none, given.rolling + none)
        numbers |= of_contacts(world, problem.rows.touching.number, ground)
    if world.dry:
        dry = np.array([bound for _, bound in world.dry]) * given.h
        numbers |= {"lower": -dry, "upper": dry}

    def impulses(g: Any, start: Any) -> Solved:
        sharing = problem.rows.sharing
        return solved(world.layout, sharing, problem.S, g, numbers, start, problem.scale, given.limits)

    if not world.bounces:
        return impulses(problem.g, problem.start), np.array(1.0)

    def solve(g: Any) -> tuple[Any, ...]:
        found = impulses(g, problem.start)
        return *found[:3], np.where(found.done, 1.0, 0.0)

    def inner(a: Any, b: Any) -> Any:
        return problem.rows.motions(a) @ (problem.S @ problem.rows.motions(b))

    u, strikes = 0.5 * (problem.before + problem.after), np.any(problem.thrown != 0.0)
    impact = Impact(inner, u, strikes, 0.5 * _GAIN * problem.scale)
    last, share = solve_without_gain(solve, impact, problem.g, problem.g - problem.thrown, np.array(0.0))
    return Solved(last[0], last[1], last[2], last[3] > 0.5), share


def _given_back(world: World, problem: Problem, v: Any, h: Any) -> Any:
    """δ (nv,): the motion that takes a share of penetrations back and closes no gap; zero where nothing penetrates."""
    pushing = world.pushing
    if not pushing:
        return np.zeros(world.nv)
    gap = np.concatenate([problem.rows.touching.gap, problem.rows.stop_gap])

    def corrected(v: Any) -> Any:
        ahead = gap + h * problem.rows.velocities(v)[pushing]
        most = np.concatenate([np.full(world.slots, _SLOWLY * h), np.full(world.ends, np.inf)])
        wanted = np.where(gap < -SLOP, np.minimum(-_GIVEN_BACK * gap, most), -np.maximum(ahead, 0.0))
        all_rows = problem.rows.response(problem.S)
        G, held = _beside_loops(world, all_rows, pushing)
        own = np.array([G[k, k] for k in range(len(pushing))])
        for k, n in enumerate(world.normals):
            own[k] = own[k] + _LEAN * np.maximum(all_rows[n - 2, n - 2], all_rows[n - 1, n - 1])
        own = np.where(own > 0.0, own, 1.0)

        def sweep(carry: Any) -> Any:
            push, made = np.array(carry[0]), carry[1]
            for k in range(len(pushing)):
                push[k] = np.maximum((wanted[k] - G[k] @ push + G[k, k] * push[k]) / own[k], 0.0)
            return push, made + 1.0

        push, _ = while_loop(lambda carry: carry[1] < 10.0, sweep, (np.zeros(len(pushing)), np.array(0.0)), 10)
        whole = np.zeros(world.m)
        for k, row in enumerate(pushing):
            whole[row] = push[k]
        whole[world.in_contact : world.in_contact + world.mechanism.m] = held @ push
        return problem.response(whole)

    return cond(np.min(gap) < -SLOP, corrected, np.zeros(world.nv), v)


def _beside_loops(world: World, G: Any, rows: list[int]) -> tuple[Any, Any]:
    """How some rows respond to each other while loops stay closed, and what those need per impulse of each row."""
    loops = list(range(world.in_contact, world.in_contact + world.mechanism.m))
    if not loops:
        return G[rows][:, rows], np.zeros((0, len(rows)))
    own = np.array([G[k, k] for k in loops])
    across = G[loops][:, rows]
    held = -solve_without_pivots(G[loops][:, loops] + np.diag(np.where(own > 0.0, _REDUNDANT * own, 1.0)), across)
    return G[rows][:, rows] + across.T @ held, held


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
    first = beginning(world, q, v, impulse, contact, time)
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
