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

from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import while_loop
from delassus.dynamics.tree.check import check_inertias
from delassus.simulation.actuators.activation import activate, count_clipped
from delassus.simulation.actuators.drive import drive, limited_servos
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


def in_substeps(world: World, last: Moved, given: Given) -> Moved:
    """A step of time, in several where a joint turns by more than `TURN` in one.

    It is tried as one step first, and if that was too long, made again in as many as its angle says. The usual world
    leaves such steps to the whole one. Impulses are those of the last substep, as if it had taken the whole step.
    """
    if world.usual is not None or not turning_dofs(world.model, components(world.mechanism, last.q)):
        made = one_step(world, last, given)
        return made._replace(again=np.where(made.angle > TURN, 1.0, made.again)) if world.usual is not None else made

    def go_on(carry: Any) -> Any:
        return carry[1] < carry[2]

    def substep(carry: Any) -> Any:
        state, done, count = Moved(*carry[0]), carry[1], carry[2]
        made = one_step(world, state._replace(impulse=state.impulse / count), given._replace(h=given.h / count))
        needed = _substeps(made.angle)
        retry = (count < 1.5) & (needed > 1.5)
        made = made._replace(impulse=made.impulse * count)
        kept = tuple(np.where(retry, old, new) for old, new in zip(state, made, strict=True))
        return kept, np.where(retry, done, done + 1.0), np.where(retry, needed, count)

    def loop(count: Any) -> Any:
        return while_loop(go_on, substep, (tuple(last), np.array(0.0), count), MOST_SUBSTEPS + 1)[0]

    if world.all_slots:
        return Moved(*loop(np.array(1.0)))
    # Without contacts a step is short: straight code is worth being compiled a second time.
    made = one_step(world, last, given)
    count = _substeps(made.angle)
    return Moved(*cond(count > 1.5, loop, tuple(made), count))


def _substeps(angle: Any) -> Any:
    """How many substeps a step takes in which a joint turns by an angle [rad]."""
    needed = np.clip(np.ceil(angle / TURN), 1.0, float(MOST_SUBSTEPS))
    return np.where(np.isfinite(angle), needed, float(MOST_SUBSTEPS))


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
    residual, count, unsolved, share = np.array(0.0), np.array(0.0), np.array(0.0), np.array(1.0)
    if world.m:
        (impulse, residual, count, done), share = solve_impulses(world, problem, given)
        unsolved = np.where(done, 0.0, 1.0)
        v = problem.free + problem.response(impulse)
    found = problem.driven.modes_at(v)
    missing = missed(world, last.q, v, h, contact)
    if world.usual is not None:
        missing = missing | pushed_elsewhere(world, last.impulse, last.contact)
    if len(found) and world.usual is not None:
        missing = missing | np.any(found != problem.driven.modes)
    again = np.where(missing, 1.0, last.again)
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
        np.where(contact.more | rows.more_stops, 1.0, last.many),
        np.maximum(last.unsolved, unsolved),
        again,
        last.clipped + problem.driven.clipped,
        pace.angle,
        np.where((pace.angle > LONGEST_TURN) | (pace.substeps > SUBSTEPS), 1.0, last.too_long),
        np.where(share < 1.0, 1.0, last.limited),
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

    def throw(carry: Any) -> Any:
        share, start, count = carry[0], carry[1], carry[3]
        g = problem.g - (1.0 - share) * problem.thrown
        found = impulses(g, start)
        moved = problem.rows.motions(found.impulse)
        gained = found.impulse @ (problem.before + problem.after) + moved @ (problem.S @ moved)  # twice their work
        fine = gained <= _GAIN * problem.scale * np.sum(np.abs(found.impulse))
        fine = fine | np.all(problem.thrown == 0.0)
        ended = np.where(fine | (share < 0.5 / _SHARES), 1.0, 0.0)
        done = np.where(found.done, 1.0, 0.0)
        return share - 1.0 / _SHARES, found.impulse, found.residual, count + found.iterations, done, ended

    zero = np.array(0.0)
    first = (np.array(1.0), problem.start, zero, zero, zero, zero)
    last = while_loop(lambda carry: carry[5] < 0.5, throw, first, _SHARES + 1)
    return Solved(last[1], last[2], last[3], last[4] > 0.5), last[0] + 1.0 / _SHARES


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
    end = rows + world.na
    zero, activation, padding = np.array(0.0), impulse[rows:end], (impulse[end:], contact[slots:])
    control = control[: world.nu]
    first = beginning(world, q, v, impulse, contact, time)
    usable = (alive > 0.5) & ~np.any(np.isnan(control)) if world.nu else alive > 0.5
    control = np.where(usable, control, 0.0)

    def advance(state: Moved, activation: Any) -> tuple[Moved, Any]:
        """A step of time; activations depend on controls alone, and move once in it."""
        signals, after = activate(world.actuators, activation, control, given.h)
        made = in_substeps(world, state, given._replace(control=signals))
        if world.na:
            made = made._replace(clipped=made.clipped + count_clipped(world.actuators, control))
        return made, after

    if world.substeps == 1:
        last, activated = advance(first, activation)
    else:

        def one_more(carry: Any) -> Any:
            state, after = advance(Moved(*carry[0]), carry[2])
            return tuple(state), carry[1] + 1.0, after

        start = (tuple(first), zero, activation)
        carry = while_loop(lambda carry: carry[1] < float(world.substeps), one_more, start, world.substeps)
        last, activated = Moved(*carry[0]), carry[2]
    hard = (last.unsolved > 0.5) & (given.limits.patience < PATIENCE)
    good = usable & ~hard & (last.again < 0.5) & np.isfinite(np.sum(last.q) + np.sum(last.v) + np.sum(last.impulse))
    if world.na:
        good = good & np.isfinite(np.sum(activated))
        activation = np.where(good, activated, activation)
    q, v, impulse, contact = (np.where(good, new, old) for new, old in zip(last[:4], first[:4], strict=True))
    impulse, contact = np.concatenate([impulse, activation, padding[0]]), np.concatenate([contact, padding[1]])
    mark = (
        np.where(good, 0.0, float(Mark.FROZEN))
        + float(Mark.MANY_CONTACTS) * last.many
        + float(Mark.UNSOLVED) * last.unsolved
        + np.where(last.clipped > 0.0, float(Mark.CLIPPED), 0.0)
        + float(Mark.TOO_LONG) * last.too_long
        + float(Mark.ENERGY_LIMITED) * last.limited
    )
    left = np.where(hard, HARD, np.where(last.again > 0.5, MISSED, float(Mark.FROZEN)))
    mark = np.where(good, mark, np.where(usable, left, float(Mark.FROZEN)))
    return q, v, impulse, contact, last.residual, last.iterations, mark
