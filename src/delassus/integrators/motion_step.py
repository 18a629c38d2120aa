"""One integration step: accepted, repeated with a shorter length, or passed to the event search."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import map as along
from delassus.integrators.event_search import Search, crossing
from delassus.integrators.protocol import Integrator, Step, System
from delassus.integrators.task import Task
from delassus.output.status import MotionStatus

CLOSED: Final = 1e-10
"""Position error after a projection, relative to the robot's length or a radian, that counts as zero."""

_ROUNDING: Final = 1e-14
"""Steps below this fraction of the time are lost in rounding."""


class Course(NamedTuple):
    """Constants between two output times: the system, both times [s], tolerance, and maximum number of steps."""

    system: System
    begin: Any
    until: Any
    tolerance: Any
    most: Any

    def sample_times(self, task: Task) -> Any:
        """Times (nsamples,) [s] of the samples between output times."""
        shares = numpy.arange(1, task.nsamples + 1) / (task.nsamples + 1)
        return shares * (self.until - self.begin) + self.begin


class Motion(NamedTuple):
    """State of the integration.

    Attributes:
        going: Whether the motion continues.
        q, v, time: The current state.
        length: [s] length of the next step.
        before: (nevents,) values of the event functions.
        status: A value of `MotionStatus`.
        steps, rejected: Number of accepted and of repeated steps.
        happened: (nevents,) [s] times of events, NaN before.
        residual: The largest residual of implicit steps.
        search: The event search.
        samples: States between output times, (nsamples, nq) and (nsamples, nv).
        first, known: The acceleration at the start of the next step, and whether it is known.
    """

    going: Any
    q: Any
    v: Any
    time: Any
    length: Any
    before: Any
    status: Any
    steps: Any
    rejected: Any
    happened: Any
    residual: Any
    search: Search
    samples: tuple[Any, Any]
    first: Any
    known: Any


class Trial(NamedTuple):
    """A trial step.

    Attributes:
        begins: Whether it has zero length, to compute the first stage.
        last: Whether it ends at the output time.
        h: [s] length.
        step: Result of the method.
        q, v: State at its end.
        off: Its constraint error; `closed` if that counts as zero, or is NaN.
        finite, fine: Whether the state is finite, and its error below the tolerance.
        factor: Factor from its length to that of the next step.
    """

    begins: Any
    last: Any
    h: Any
    step: Step
    q: Any
    v: Any
    off: Any
    closed: Any
    finite: Any
    fine: Any
    factor: Any


def try_step(task: Task, course: Course, now: Motion) -> Trial:
    """A step from the current state, with the length of the event search, the output time or the method."""
    method, system, search = task.integrator, course.system, now.search
    reuses = _reuses(task)
    remaining = course.until - now.time
    begins = ~now.known if reuses else np.array(False)  # a step of length zero, to compute the first stage
    last = (remaining <= now.length * (1.0 + 1e-9)) & ~search.on & ~begins
    h = np.where(search.on, search.trial(), np.where(last, remaining, now.length))
    h = np.where(begins, 0.0, h)
    made = method.step(system, now.time, now.q, now.v, h, **({"first": now.first} if reuses else {}))
    q, v, off = _project_step(task, system, now.time + h, made)
    closed = off <= CLOSED
    finite = np.isfinite(np.sum(q) + np.sum(v)) & closed
    fine, factor = finite, np.array(1.0)
    if method.adaptive:
        error = _size(system, made.error, course.tolerance, now.v, v)
        factor = np.where(finite, np.clip(0.9 * error ** (-1.0 / method.order), 0.2, 5.0), 0.2)
        fine = finite & ((error <= 1.0) | search.on)
    return Trial(begins, last, h, made, q, v, off, closed, finite, fine, factor)


def take_step(task: Task, course: Course, now: Motion, trial: Trial) -> Motion:
    """The state after a trial step: advanced, or unchanged with a shorter next step or an event search."""
    method, search, h, until = task.integrator, now.search, trial.h, course.until
    q, v, fine, begins = trial.q, trial.v, trial.fine, trial.begins
    reuses = _reuses(task)
    values = task.event_values(now.time + h, q, v)
    if task.events:
        search = search.with_step(fine & ~begins, h, now.before, values, q, v, task.events, now.time)
        taken = fine & (~search.on | search.found)
        at_event = search.found
        h = np.where(at_event, search.high, h)
        q, v = np.where(at_event, search.q, q), np.where(at_event, search.v, v)
        values = np.where(at_event, search.after, values)
        hit = crossing(task.events, now.before, values) & at_event
    else:
        taken, at_event, hit = fine, np.array(False), np.array([False])
    taken = taken & ~begins
    reached = taken & trial.last & ~at_event
    time = np.where(taken, np.where(reached, until, now.time + h), now.time)
    happened = np.where(hit, time, now.happened)
    searching = search.on & ~search.found
    length = _next_length(method, now, trial, h, search.on, taken, reached)
    residual = now.residual
    if trial.step.residual is not None:  # the residual of a failed step explains the failure
        counts = taken | ~trial.finite
        finite = np.where(np.isfinite(trial.step.residual), trial.step.residual, 0.0)
        residual = np.maximum(residual, np.where(counts, finite, 0.0))
    status = _next_status(task, course, now, trial, length, hit)
    steps, rejected = now.steps + np.where(taken, 1.0, 0.0), now.rejected + np.where(taken | begins, 0.0, 1.0)
    out = (steps + rejected >= course.most) & (time < until) & (status < 0.5)
    status = np.where(out, float(MotionStatus.STEPS), status)
    going = (status < 0.5) & ((time < until) | searching)
    return Motion(
        going=going,
        q=np.where(taken, q, now.q),
        v=np.where(taken, v, now.v),
        time=time,
        length=length,
        before=np.where(taken, values, now.before),
        status=status,
        steps=steps,
        rejected=rejected,
        happened=happened,
        residual=residual,
        search=search.unless(search.found),
        samples=_sample_step(task, trial.step, course.sample_times(task), now.time, h, time, taken, now.samples),
        # Acceleration of the last stage, before the projection, which changes a state by less than the error of the
        # step.
        first=np.where(taken | begins, trial.step.last, now.first) if reuses else now.first,
        known=~at_event & (taken | begins | now.known) if reuses else now.known,
    )


def _reuses(task: Task) -> bool:
    """Whether the first stage of a step is the last one of the previous step."""
    return getattr(task.integrator, "first_is_last", False)


def _next_length(
    method: Integrator, now: Motion, trial: Trial, h: Any, searches: Any, is_taken: Any, is_reached: Any
) -> Any:
    """Length [s] of the next step; shortening a step at the output time does not reduce it."""
    longer = np.where(is_reached, np.maximum(now.length, h * trial.factor), h * trial.factor)
    shorter = h * np.minimum(trial.factor, 1.0)
    if not method.adaptive:
        return now.length
    length = np.where(searches, now.length, np.where(is_taken, longer, np.where(trial.fine, now.length, shorter)))
    return np.where(trial.begins, now.length, length)


def _next_status(task: Task, course: Course, now: Motion, trial: Trial, length: Any, hit: Any) -> Any:
    """A value of `MotionStatus`, except for the limit on steps."""
    why = np.where(trial.closed | np.isnan(trial.off), float(MotionStatus.NOT_FINITE), float(MotionStatus.OPEN))
    if task.integrator.adaptive:
        shortest = _ROUNDING * np.maximum(np.abs(now.time), np.abs(course.until))
        too_short = ~trial.fine & (trial.begins | (length <= shortest))
        status = np.where(too_short, np.where(trial.finite, float(MotionStatus.STEP_SIZE), why), now.status)
    else:
        status = np.where(trial.finite, now.status, why)
    ends = numpy.array([event.ends for event in task.events] or [False], float)
    return np.where(np.any(hit & (ends > 0.5)), float(MotionStatus.EVENT), status)


def _project_step(task: Task, system: System, time: Any, step: Step) -> tuple[Any, Any, Any]:
    """The state at the end of a step, projected according to the options, and its remaining error."""
    if task.projection == "none" or not task.mechanism.m:
        return step.q, step.v, np.array(0.0)
    q, v, error = system.project(time, step.q, step.v)
    return (step.q, v, np.array(0.0)) if task.projection == "velocities" else (q, v, error)


def _sample_step(
    task: Task, step: Step, times: Any, time: Any, h: Any, now: Any, is_taken: Any, sampled: tuple[Any, Any]
) -> tuple[Any, Any]:
    """The states at `times`, updated with those inside the step from `time` to `now`."""
    if not task.samples or step.between is None:
        return sampled
    inside = (is_taken & (times > time) & (times <= now))[:, None]
    states = along(step.between, (times - time) / h)
    return np.where(inside, states[0], sampled[0]), np.where(inside, states[1], sampled[1])


def _size(system: System, error: Any, tolerance: Any, v: Any, new_v: Any) -> Any:
    """The largest error of a step, as a positive multiple of the tolerance."""
    faster = np.maximum(np.abs(v), np.abs(new_v))
    of_q = np.max(np.abs(error[0]) / system.sizes)
    of_v = np.max(np.abs(error[1]) / (system.sizes + faster))
    return np.maximum(np.maximum(of_q, of_v) / tolerance, 1e-10)
