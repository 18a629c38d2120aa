"""A control period: several steps with the same inputs, and the flags that tell the host what to solve again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import while_loop
from delassus.dynamics.tree.check import check_inertias
from delassus.step.flags import Mark
from delassus.step.period.hooks import COUNTERS, HookInputs, StepHooks, apply_command
from delassus.step.points.statistics import begin_tally, end_tally, update_tally
from delassus.step.scene import Scene
from delassus.step.stages.pipeline import Step, initial_result, take_activated_step
from delassus.step.stages.types import MAX_ITERATIONS, StepInputs, StepResult, StepState


class _Period(NamedTuple):
    """A control period so far.

    Attributes:
        result: Of its steps.
        done: The number of finished steps.
        tally: Contact statistics (`points.statistics`).
        memory: (n,) of the functions in the period.
        usable: (1,) whether their commands could be used; (0,) without functions.
    """

    result: StepResult
    done: Any
    tally: Any
    memory: Any
    usable: Any


class PeriodStart(NamedTuple):
    """The start of a control period: a state as arrays, its time [s], and 1 unless it is frozen."""

    q: Any
    v: Any
    impulse: Any
    contact: Any
    time: Any
    alive: Any


def take_period(
    scene: Scene,
    start: PeriodStart,
    inputs: StepInputs,
    step: Step = take_activated_step,
    hooks: StepHooks | None = None,
) -> tuple[Any, ...]:
    """All steps of a control period: q, v, impulse, contact, residual, iterations, flags (see `Mark`).

    `step` makes one of them. An environment that is frozen, not finite, or to be solved again keeps its state.
    """
    check_inertias(scene.model)
    q, v, impulse, contact, time, alive = start
    tallied = scene.full.m + scene.na
    carried = tallied + scene.tally_size
    end = carried + scene.memory_size
    old_tally, padding = impulse[tallied:carried], (impulse[end:], contact[scene.full_slots :])
    control = inputs.control[: scene.nu]
    first = initial_result(scene, q, v, impulse, contact, time)
    usable = (alive > 0.5) & ~np.any(np.isnan(control)) if scene.nu else alive > 0.5
    inputs = inputs._replace(control=np.where(usable, control, 0.0))
    tally = begin_tally(scene, old_tally) if scene.tracked else np.zeros(0)
    if hooks is None:
        period = _run_steps(scene, _Period(first, np.array(0.0), tally, np.zeros(0), np.zeros(0)), inputs, step)
    else:
        memory, counters = impulse[carried : end - COUNTERS], impulse[end - COUNTERS : end]
        begin = _Period(first, np.array(0.0), tally, memory, np.stack([usable]))
        period = _run_hooked_steps(scene, begin, inputs, step, _Hooked(hooks, old_tally, counters))
        usable = period.usable[0]
    last = period.result
    state = last.state
    too_few = last.unsolved & ((inputs.solver.iterations < MAX_ITERATIONS) | (scene.fallback is not None))
    finite = np.isfinite(np.sum(state.q) + np.sum(state.v) + np.sum(state.impulse))
    if scene.na:
        finite = finite & np.isfinite(np.sum(state.activation))
    if hooks is not None:
        finite = finite & ~np.any(np.isnan(period.memory)) if np.size(period.memory) else finite
    good = usable & ~too_few & ~last.omitted & finite
    kept = StepState(*(np.where(good, new, old) for new, old in zip(state, first.state, strict=True)))
    q, v = kept.q, kept.v
    tally = np.where(good, end_tally(scene, period.tally), old_tally) if scene.tracked else np.zeros(0)
    parts = [kept.impulse, kept.activation, tally]
    if hooks is not None:
        again = usable & (too_few | last.omitted)
        count = np.where(again, counters[2], counters[2] + 1.0)
        parts += [np.where(good, period.memory, memory), np.stack([counters[0], counters[1], count])]
    impulse = np.concatenate([*parts, padding[0]])
    contact = np.concatenate([kept.contact, padding[1]])
    flags = sum(
        np.where(condition, float(mark), 0.0)
        for mark, condition in (
            (Mark.MANY_CONTACTS, last.overflow),
            (Mark.UNSOLVED, last.unsolved),
            (Mark.CLIPPED, last.clipped),
            (Mark.TOO_LONG, last.too_long),
            (Mark.ENERGY_LIMITED, last.energy_limited),
        )
    )
    retry = np.where(
        too_few, float(Mark.NEEDS_ITERATIONS), np.where(last.omitted, float(Mark.NEEDS_FULL_SET), float(Mark.FROZEN))
    )
    flags = np.where(good, flags, np.where(usable, retry, float(Mark.FROZEN)))
    return q, v, impulse, contact, last.residual, last.iterations, flags


def _run_steps(scene: Scene, period: _Period, inputs: StepInputs, step: Step) -> _Period:
    """All steps of a period with the same inputs."""
    return _repeat(scene, lambda now: _run_step(scene, now, inputs, step), period)


def _run_step(scene: Scene, now: _Period, inputs: StepInputs, step: Step) -> _Period:
    """One step of a period."""
    result, tally = step(scene, now.result, inputs), now.tally
    if scene.tracked:
        tally = update_tally(scene, tally, result.state.impulse, result.state.contact, inputs.time_step)
    return now._replace(result=result, done=now.done + 1.0, tally=tally)


def _repeat(scene: Scene, advance: Callable[[_Period], _Period], period: _Period) -> _Period:
    """The substeps of a period."""
    if scene.substeps == 1:
        return advance(period)
    most = scene.substeps
    return while_loop(lambda now: now.done < float(most), advance, period, most)


class _Hooked(NamedTuple):
    """Functions in a period, the tallies (tallies,) of the last period, and the counters (3,)."""

    hooks: StepHooks
    old_tally: Any
    counters: Any


def _run_hooked_steps(scene: Scene, period: _Period, inputs: StepInputs, step: Step, hooked: _Hooked) -> _Period:
    """All steps of a period, with a user's functions before and after the period or each step."""
    hooks = hooked.hooks

    def command(now: _Period) -> tuple[StepInputs, _Period]:
        if hooks.before is None:
            return inputs, now
        read = _hook_inputs(scene, now, inputs, hooked.old_tally, hooked.counters)
        made = hooks.before(read)
        chosen, usable = apply_command(made, inputs, now.usable[0])
        return chosen, now._replace(memory=made.memory, usable=np.stack([usable]))

    def read_result(now: _Period, chosen: StepInputs, number: Any, tally: Any) -> _Period:
        if hooks.after is None:
            return now
        read = _hook_inputs(scene, now._replace(done=number), chosen, tally, hooked.counters)
        return now._replace(memory=hooks.after(read))

    def advance(now: _Period) -> _Period:
        chosen, now = command(now)
        return read_result(_run_step(scene, now, chosen, step), chosen, now.done, hooked.old_tally)

    if hooks.every_step:
        return _repeat(scene, advance, period)
    chosen, period = command(period)
    period = _run_steps(scene, period, chosen, step)
    tally = end_tally(scene, period.tally) if scene.tracked else period.tally
    return read_result(period, chosen, np.array(0.0), tally)


def _hook_inputs(scene: Scene, now: _Period, inputs: StepInputs, tally: Any, counters: Any) -> HookInputs:
    return HookInputs(scene.full, now.result.state, inputs, tally, now.memory, counters, now.done)
