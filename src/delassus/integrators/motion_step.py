"""One integration step: accepted, repeated with a shorter step, or passed to the event search."""

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
"""An error of position after a projection, as a share of the robot's length or of a radian, that counts as none."""

_ROUNDING: Final = 1e-14
"""Steps below this share of the time cannot be told from none."""


class Course(NamedTuple):
    """What stays the same from one output time to the next: the system, both times [s], tolerance, and most steps."""

    system: System
    begin: Any
    until: Any
    tolerance: Any
    most: Any

    def sample_times(self, task: Task) -> Any:
        """Times (nsamples,) [s] of the states that are wanted in between."""
        shares = numpy.arange(1, task.nsamples + 1) / (task.nsamples + 1)
        return shares * (self.until - self.begin) + self.begin


class Motion(NamedTuple):
    """A state on its way.

    Attributes:
        going: Whether it is under way.
        q, v, time: The state.
        length: [s] of the next step.
        before: (nevents,) what the functions of events are.
        status: The number of a `MotionStatus`.
        steps, rejected: How many were taken, and how many were made again.
        happened: (nevents,) [s] when events have happened, NaN before.
        residual: The largest one of implicit steps.
        search: The search for an event.
        samples: States in between, (nsamples, nq) and (nsamples, nv).
        first, known: The acceleration that the next step begins with, and whether it is known.
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
    """A step that is tried.

    Attributes:
        begins: Whether it has the length zero, to find the first stage.
        last: Whether it ends at the output time.
        h: [s] its length.
        step: What the method gives.
        q, v: The state at its end.
        off: How far that is off the constraints; `closed` if that counts as none, or is no number.
        finite, fine: Whether the state is usable, and its error small enough.
        factor: By what the next step is longer, to meet the tolerance.
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
    """A step from where the state is, as long as the search for an event, the output time or the method says."""
    method, system, search = task.integrator, course.system, now.search
    reuses = _reuses(task)
    rest = course.until - now.time
    begins = ~now.known if reuses else np.array(False)  # a step of length zero, to find the first stage
    last = (rest <= now.length * (1.0 + 1e-9)) & ~search.on & ~begins
    h = np.where(search.on, search.trial(), np.where(last, rest, now.length))
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
    """The state after a step that was tried: further on, or the same with a shorter step or a search ahead."""
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
    if trial.step.residual is not None:  # that of a step that could not be taken tells why
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
        # That of the last stage, before its projection, which moves a state by less than the step is off.
        first=np.where(taken | begins, trial.step.last, now.first) if reuses else now.first,
        known=~at_event & (taken | begins | now.known) if reuses else now.known,
    )


def _reuses(task: Task) -> bool:
    """Whether the first stage of a step is the last one of the step before."""
    return getattr(task.integrator, "first_is_last", False)


def _next_length(method: Integrator, now: Motion, trial: Trial, h: Any, searches: Any, taken: Any, reached: Any) -> Any:
    """Length [s] of the next step; one that was cut at the output time makes none shorter."""
    longer = np.where(reached, np.maximum(now.length, h * trial.factor), h * trial.factor)
    shorter = h * np.minimum(trial.factor, 1.0)
    if not method.adaptive:
        return now.length
    length = np.where(searches, now.length, np.where(taken, longer, np.where(trial.fine, now.length, shorter)))
    return np.where(trial.begins, now.length, length)


def _next_status(task: Task, course: Course, now: Motion, trial: Trial, length: Any, hit: Any) -> Any:
    """The number of a `MotionStatus`, but for the count of steps."""
    why = np.where(trial.closed | np.isnan(trial.off), float(MotionStatus.NOT_FINITE), float(MotionStatus.OPEN))
    if task.integrator.adaptive:
        shortest = _ROUNDING * np.maximum(np.abs(now.time), np.abs(course.until))
        too_short = ~trial.fine & (trial.begins | (length <= shortest))
        status = np.where(too_short, np.where(trial.finite, float(MotionStatus.STEP_SIZE), why), now.status)
    else:
        status = np.where(trial.finite, now.status, why)
    ends = numpy.array([event.ends for event in task.events] or [False], float)
    return np.where(np.any(hit & (ends > 0.5)), float(MotionStatus.EVENT), status)


def _project_step(task: Task, system: System, time: Any, made: Step) -> tuple[Any, Any, Any]:
    """The state at the end of a step, projected as it is asked for, and how far it is off after that."""
    if task.projection == "none" or not task.mechanism.m:
        return made.q, made.v, np.array(0.0)
    q, v, off = system.project(time, made.q, made.v)
    return (made.q, v, np.array(0.0)) if task.projection == "velocities" else (q, v, off)


def _sample_step(
    task: Task, made: Step, times: Any, time: Any, h: Any, now: Any, taken: Any, sampled: tuple[Any, Any]
) -> tuple[Any, Any]:
    """The states at `times`, with those that a step from `time` to `now` passes."""
    if not task.samples or made.between is None:
        return sampled
    inside = (taken & (times > time) & (times <= now))[:, None]
    found = along(made.between, (times - time) / h)
    return np.where(inside, found[0], sampled[0]), np.where(inside, found[1], sampled[1])


def _size(system: System, error: Any, tolerance: Any, v: Any, new_v: Any) -> Any:
    """The largest error of a step, as a multiple of what is tolerated; not zero."""
    faster = np.maximum(np.abs(v), np.abs(new_v))
    of_q = np.max(np.abs(error[0]) / system.sizes)
    of_v = np.max(np.abs(error[1]) / (system.sizes + faster))
    return np.maximum(np.maximum(of_q, of_v) / tolerance, 1e-10)
