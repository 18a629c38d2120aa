"""One control period of a robot on the ground: `substeps` steps of time in one kernel.

A step h from (q, v), with M̂ = M + diag(h d + h² k) for damping d and stiffness k of joints and servos:

    v_f = v + h M̂⁻¹ (τ - c)                       what the velocity would be without contacts, c at the middle
    G = J M̂⁻¹ Jᵀ,   g = J v_f + what rows are held to
    λ, σ = G λ + g                                 the contact problem, started from the impulses of the step before
    v⁺ = v_f + M̂⁻¹ Jᵀ λ
    q⁺ = q ⊕ (h v⁺ + δ)                            δ takes penetrations back, without any velocity
    q⁺, v⁺ projected                               where loops are closed
    v⁺ restored                                    to the energy and momentum that the impulses allow, see `arrival`

A gap may close and not more: J v⁺ + gap/h ≥ 0, with its mean velocity over the step where a free body rolls. A contact
that would be passed faster than gravity accelerates in two steps strikes: it leaves with e times the velocity that it
came with, or with less where friction would make that gain energy.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import while_loop
from delassus.dynamics.tree.check import check_inertias
from delassus.simulation.actuation.actuators import drive, limited_servos
from delassus.simulation.step.arrival import arrive
from delassus.simulation.step.friction import of_contacts
from delassus.simulation.step.problem import Given, Moved, Problem, beginning, problem_of
from delassus.simulation.step.rows import missed, pushed_elsewhere
from delassus.simulation.step.solve import PATIENCE, Solved, solved
from delassus.simulation.step.world import World
from delassus.stepping.marks import Mark
from delassus.stepping.scheme.components import components, turning_dofs
from delassus.stepping.scheme.free_rotation import SUBSTEPS

HARD: Final = 1024.0
"""What a kernel gives for an item that its patience was not enough for: it keeps its state."""

MISSED: Final = 2048.0
"""The same for an item in which something that was left out of its world would matter."""

TURN: Final = 0.2
"""Angle [rad] that a joint may turn by in a step; what turns by more is simulated in substeps."""

MOST_SUBSTEPS: Final = 16
"""Substeps of a step, at most."""

LONGEST_TURN: Final = 0.4
"""Angle [rad] beyond which a step, or a substep, is marked as too long."""

_GAIN: Final = 1e-8
"""Of velocities times impulses: what counts as energy that strikes have gained."""

_GUESSES: Final = 8.0
"""How often it is guessed which servos are at their limits, at most."""

_SHARES: Final = 4
"""The restitution of strikes that would gain energy is lowered in so many steps, to nothing at last."""


class _Substeps(NamedTuple):
    """The state after so many substeps that are done, and how many a step takes."""

    state: Moved
    done: Any
    count: Any


def in_substeps(world: World, last: Moved, given: Given) -> Moved:
    """A step of time, in several where a joint turns by more than `TURN` in one.

    It is tried as one step first, and if that was too long, made again in as many as its angle says. The usual world
    leaves such steps to the whole one. Impulses are those of the last substep, as if it had taken the whole step.
    """
    if world.usual is not None or not turning_dofs(world.model, components(world.mechanism, last.q)):
        made = one_step(world, last, given)
        return made._replace(again=made.again | (made.angle > TURN)) if world.usual is not None else made

    def go_on(now: _Substeps) -> Any:
        return now.done < now.count

    def substep(now: _Substeps) -> _Substeps:
        state, done, count = now
        made = one_step(world, state._replace(impulse=state.impulse / count), given._replace(h=given.h / count))
        needed = _substeps(made.angle)
        retry = (count < 1.5) & (needed > 1.5)
        made = made._replace(impulse=made.impulse * count)
        kept = Moved(*(np.where(retry, old, new) for old, new in zip(state, made, strict=True)))
        return _Substeps(kept, np.where(retry, done, done + 1.0), np.where(retry, needed, count))

    def loop(count: Any) -> Moved:
        made: _Substeps = while_loop(go_on, substep, _Substeps(last, np.array(0.0), count), MOST_SUBSTEPS + 1)
        return made.state

    if world.all_slots:
        return loop(np.array(1.0))
    # Without contacts a step is short: straight code is worth being compiled a second time.
    made = one_step(world, last, given)
    count = _substeps(made.angle)
    chosen: Moved = cond(count > 1.5, loop, made, count)
    return chosen


def _substeps(angle: Any) -> Any:
    """How many substeps a step takes in which a joint turns by an angle [rad]."""
    needed = np.clip(np.ceil(angle / TURN), 1.0, float(MOST_SUBSTEPS))
    return np.where(np.isfinite(angle), needed, float(MOST_SUBSTEPS))


class _Guess(NamedTuple):
    """The state after a step with guessed modes of servos, the modes to try next, whether the guess was wrong, and
    the number of guesses."""

    state: Moved
    modes: Any
    wrong: Any
    count: Any


def one_step(world: World, last: Moved, given: Given) -> Moved:
    """A step of time.

    Which servos are at their limits is known at its end alone. In the usual world a step that has guessed wrong is left
    to the whole one, which tries again with what it has found.
    """
    if world.usual is not None or not limited_servos(world.actuators):
        return attempt(world, last, given)[0]

    def go_on(now: _Guess) -> Any:
        return now.wrong & (now.count < _GUESSES)

    def again(now: _Guess) -> _Guess:
        made, modes = attempt(world, last, given, now.modes)
        wrong = np.any(modes != now.modes)
        # From one limit to the other it goes by what is between them.
        return _Guess(made, np.where(modes * now.modes < 0.0, 0.0, modes), wrong, now.count + 1.0)

    driven = drive(world.model, world.actuators, last.q, last.v, given.control, given.h)
    final: _Guess = while_loop(go_on, again, _Guess(last, driven.modes, np.array(True), np.array(0.0)), int(_GUESSES))
    return final.state


def attempt(world: World, last: Moved, given: Given, modes: Any = None) -> tuple[Moved, Any]:
    """A step of time with guessed modes of servos, and what they are at its end."""
    h, time = given.h, last.time + given.h
    problem = problem_of(world, last, given, time, modes)
    rows, contact = problem.rows, problem.rows.touching
    v, impulse = problem.free, np.zeros(world.m)
    residual, count, unsolved, share = np.array(0.0), np.array(0.0), np.array(False), np.array(1.0)
    if world.m:
        (impulse, residual, count, done), share = solve_impulses(world, problem, given)
        unsolved = ~done
        v = problem.free + problem.response(impulse)
    found = problem.driven.modes_at(v)
    missing = missed(world, last.q, v, h, contact)
    if world.usual is not None:
        missing = missing | pushed_elsewhere(world, last.impulse, last.contact)
    if len(found) and world.usual is not None:
        missing = missing | np.any(found != problem.driven.modes)
    again = missing | last.again
    q, v, pace = arrive(world, problem, last, v, impulse, h)
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
        contact.more | rows.more_stops | last.many,
        last.unsolved | unsolved,
        again,
        last.clipped + problem.driven.clipped,
        pace.angle,
        (pace.angle > LONGEST_TURN) | (pace.substeps > SUBSTEPS) | last.too_long,
        (share < 1.0) | last.limited,
    )
    return made, found


class _Restitution(NamedTuple):
    """The share of restitution to try next, the last solution, whether it is solved, and whether it ends the tries."""

    share: Any
    impulse: Any
    residual: Any
    iterations: Any
    done: Any
    ended: Any


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

    def throw(last: _Restitution) -> _Restitution:
        share, start, count = last.share, last.impulse, last.iterations
        g = problem.g - (1.0 - share) * problem.thrown
        found = impulses(g, start)
        moved = problem.rows.motions(found.impulse)
        gained = found.impulse @ (problem.before + problem.after) + moved @ (problem.S @ moved)  # twice their work
        fine = gained <= _GAIN * problem.scale * np.sum(np.abs(found.impulse))
        fine = fine | np.all(problem.thrown == 0.0)
        ended = fine | (share < 0.5 / _SHARES)
        solution = found.impulse, found.residual, count + found.iterations
        return _Restitution(share - 1.0 / _SHARES, *solution, found.done, ended)

    zero, no = np.array(0.0), np.array(False)
    first = _Restitution(np.array(1.0), problem.start, zero, zero, no, no)
    last: _Restitution = while_loop(lambda now: ~now.ended, throw, first, _SHARES + 1)
    return Solved(last.impulse, last.residual, last.iterations, last.done), last.share + 1.0 / _SHARES


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
        last = in_substeps(world, first, given)
    else:
        last, _ = while_loop(
            lambda carry: carry[1] < float(world.substeps),
            lambda carry: (in_substeps(world, carry[0], given), carry[1] + 1.0),
            (first, zero),
            world.substeps,
        )
    hard = last.unsolved & (given.limits.patience < PATIENCE)
    good = usable & ~hard & ~last.again & np.isfinite(np.sum(last.q) + np.sum(last.v) + np.sum(last.impulse))
    q, v, impulse, contact = (np.where(good, new, old) for new, old in zip(last[:4], first[:4], strict=True))
    impulse, contact = (np.concatenate(pair) for pair in zip((impulse, contact), padding, strict=True))
    mark = (
        np.where(good, 0.0, float(Mark.FROZEN))
        + np.where(last.many, float(Mark.MANY_CONTACTS), 0.0)
        + np.where(last.unsolved, float(Mark.UNSOLVED), 0.0)
        + np.where(last.clipped > 0.0, float(Mark.CLIPPED), 0.0)
        + np.where(last.too_long, float(Mark.TOO_LONG), 0.0)
        + np.where(last.limited, float(Mark.ENERGY_LIMITED), 0.0)
    )
    left = np.where(hard, HARD, np.where(last.again, MISSED, float(Mark.FROZEN)))
    mark = np.where(good, mark, np.where(usable, left, float(Mark.FROZEN)))
    return q, v, impulse, contact, last.residual, last.iterations, mark
