"""A control period: several steps with the same inputs, and flags for the states that the host must solve again."""

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
    """The carry of the loop over the steps of a control period.

    Attributes:
        result: The result of the last step.
        done: The number of finished steps.
        tally: Contact statistics (`points.statistics`).
        memory: (n,) memory of the user's functions.
        usable: (1,) whether all their commands were usable; (0,) without functions.
    """

    result: StepResult
    done: Any
    tally: Any
    memory: Any
    usable: Any


class PeriodStart(NamedTuple):
    """The start of a control period: a state as arrays, its time [s], and `alive`, which is 0 for a frozen state."""

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

    `step` computes one of them. The state of an environment is unchanged if it is frozen, not finite, or flagged for
    another attempt.
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
    result = period.result
    state = result.state
    needs_iterations = result.unsolved & ((inputs.solver.iterations < MAX_ITERATIONS) | (scene.fallback is not None))
    finite = np.isfinite(np.sum(state.q) + np.sum(state.v) + np.sum(state.impulse))
    if scene.na:
        finite = finite & np.isfinite(np.sum(state.activation))
    if hooks is not None:
        finite = finite & ~np.any(np.isnan(period.memory)) if np.size(period.memory) else finite
    accepted = usable & ~needs_iterations & ~result.omitted & finite
    end_state = StepState(*(np.where(accepted, new, old) for new, old in zip(state, first.state, strict=True)))
    q, v = end_state.q, end_state.v
    tally = np.where(accepted, end_tally(scene, period.tally), old_tally) if scene.tracked else np.zeros(0)
    parts = [end_state.impulse, end_state.activation, tally]
    if hooks is not None:
        is_retried = usable & (needs_iterations | result.omitted)
        count = np.where(is_retried, counters[2], counters[2] + 1.0)
        parts += [np.where(accepted, period.memory, memory), np.stack([counters[0], counters[1], count])]
    impulse = np.concatenate([*parts, padding[0]])
    contact = np.concatenate([end_state.contact, padding[1]])
    flags = sum(
        np.where(condition, float(mark), 0.0)
        for mark, condition in (
            (Mark.MANY_CONTACTS, result.overflow),
            (Mark.UNSOLVED, result.unsolved),
            (Mark.CLIPPED, result.clipped),
            (Mark.TOO_LONG, result.too_long),
            (Mark.ENERGY_LIMITED, result.energy_limited),
        )
    )
    retry = np.where(
        needs_iterations,
        float(Mark.NEEDS_ITERATIONS),
        np.where(result.omitted, float(Mark.NEEDS_FULL_SET), float(Mark.FROZEN)),
    )
    flags = np.where(accepted, flags, np.where(usable, retry, float(Mark.FROZEN)))
    return q, v, impulse, contact, result.residual, result.iterations, flags


def _run_steps(scene: Scene, period: _Period, inputs: StepInputs, step: Step) -> _Period:
    """All steps of a period with the same inputs."""
    return _repeat(scene, lambda carry: _run_step(scene, carry, inputs, step), period)


def _run_step(scene: Scene, period: _Period, inputs: StepInputs, step: Step) -> _Period:
    """One step of a period."""
    result, tally = step(scene, period.result, inputs), period.tally
    if scene.tracked:
        tally = update_tally(scene, tally, result.state.impulse, result.state.contact, inputs.time_step)
    return period._replace(result=result, done=period.done + 1.0, tally=tally)


def _repeat(scene: Scene, advance: Callable[[_Period], _Period], period: _Period) -> _Period:
    """Repeat `advance` for all steps of a period."""
    if scene.substeps == 1:
        return advance(period)
    substeps = scene.substeps
    return while_loop(lambda carry: carry.done < float(substeps), advance, period, substeps)


class _Hooked(NamedTuple):
    """Functions in a period, the tallies (tallies,) of the previous period, and the counters (3,)."""

    hooks: StepHooks
    old_tally: Any
    counters: Any


def _run_hooked_steps(scene: Scene, period: _Period, inputs: StepInputs, step: Step, hooked: _Hooked) -> _Period:
    """All steps of a period, with a user's functions before and after the period or each step."""
    hooks = hooked.hooks

    def run_before(carry: _Period) -> tuple[StepInputs, _Period]:
        if hooks.before is None:
            return inputs, carry
        command = hooks.before(_hook_inputs(scene, carry, inputs, hooked.old_tally, hooked.counters))
        commanded, usable = apply_command(command, inputs, carry.usable[0])
        return commanded, carry._replace(memory=command.memory, usable=np.stack([usable]))

    def run_after(carry: _Period, commanded: StepInputs, number: Any, tally: Any) -> _Period:
        if hooks.after is None:
            return carry
        hook_inputs = _hook_inputs(scene, carry._replace(done=number), commanded, tally, hooked.counters)
        return carry._replace(memory=hooks.after(hook_inputs))

    def advance(carry: _Period) -> _Period:
        commanded, carry = run_before(carry)
        return run_after(_run_step(scene, carry, commanded, step), commanded, carry.done, hooked.old_tally)

    if hooks.every_step:
        return _repeat(scene, advance, period)
    commanded, period = run_before(period)
    period = _run_steps(scene, period, commanded, step)
    tally = end_tally(scene, period.tally) if scene.tracked else period.tally
    return run_after(period, commanded, np.array(0.0), tally)


def _hook_inputs(scene: Scene, period: _Period, inputs: StepInputs, tally: Any, counters: Any) -> HookInputs:
    return HookInputs(scene.full, period.result.state, inputs, tally, period.memory, counters, period.done)
