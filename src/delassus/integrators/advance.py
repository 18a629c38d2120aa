"""The kernel of all integrators: advances from one output time to the next, in as many steps as a state needs.

Steps of fixed length are shortened to end at the output time. Adaptive methods choose the length: if the error of a
step is e times the tolerance, the next step is 0.9 e^(-1/p) times as long, p the order, and a step with e > 1 is
repeated. The tolerance of configurations is relative to a radian or the robot's length; that of velocities is relative
to the same per second, plus the velocities themselves.

An event is a sign change of a function over a step. The step is then repeated with shorter lengths by regula falsi on
real steps (instead of an interpolation), with occasional bisection, until the zero is enclosed. The motion continues
immediately after it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.host.kernel import kernel
from delassus.compiler.tracing.flow.control import while_loop
from delassus.integrators.event_search import Search
from delassus.integrators.motion_step import Course, Motion, take_step, try_step
from delassus.integrators.protocol import System
from delassus.integrators.task import Task
from delassus.output.status import MotionStatus

_ROUNDS: Final = 10_000
"""Nested loops count the steps: the compile time of a loop is proportional to its bound."""

MOST: Final = _ROUNDS * _ROUNDS
"""Maximum number of steps between two output times."""


class Advance(NamedTuple):
    """A state and the history of its motion.

    Attributes:
        q: Configuration (…, nq).
        v: Velocity (…, nv).
        time: (…) [s] the output time, or the time when the motion ended.
        length: (…) [s] length of the next step.
        before: (…, nevents) values of the event functions.
        status: (…) values of `MotionStatus`.
        steps: (…) number of accepted steps.
        rejected: (…) number of repeated steps, including those of event searches.
        happened: (…, nevents) [s] last time of each event; NaN without one.
        residual: (…) largest residual of implicit steps (see `Step`).
        between_q: (…, nsamples, nq) configurations at equidistant times in between, if requested.
        between_v: (…, nsamples, nv) velocities at these times.
        first: (…, nv) the acceleration at the end, if the method computes it.
        known: (…) whether it does, 1 or 0.
    """

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
    between_q: Any
    between_v: Any
    first: Any
    known: Any


@kernel(
    "(nq),(nv),(nv),(),(),(),(),(nevents),(),(),(nv),()"
    "->(nq),(nv),(),(),(nevents),(),(),(),(nevents),(),(nsamples,nq),(nsamples,nv),(nv),()",
    result=Advance,
)
def advance(
    task: Task,
    q: Any,
    v: Any,
    tau: Any,
    time: Any,
    until: Any,
    length: Any,
    tolerance: Any,
    before: Any,
    status: Any,
    most: Any,
    first: Any,
    known: Any,
) -> Advance:
    """Advance states to a later time.

    Args:
        task: The mechanism and its options.
        q: Configuration (…, nq).
        v: Velocity (…, nv).
        tau: Constant generalized forces (…, nv) [N·m, N].
        time: (…) [s] current time.
        until: (…) [s] the output time.
        length: (…) [s] length of steps, or of the first step of adaptive methods.
        tolerance: (…) tolerance of adaptive methods.
        before: (…, nevents) values of the event functions, NaN if unknown.
        status: (…) values of `MotionStatus`; only states with DONE move.
        most: (…) maximum number of steps.
        first: (…, nv) the current acceleration [rad/s², m/s²], for methods whose first stage is the last one of the
            previous step.
        known: (…) 1 if `first` is known, else 0: such methods then compute it by a step of length zero.
    """
    course = Course(
        System(task.mechanism, tau, task.control, task.projection == "stages"), time, until, tolerance, most
    )
    sound = np.sum(q) + np.sum(v) + np.sum(tau) + time + until + length + tolerance
    status = np.where(np.isfinite(sound) | (status > 0.5), status, float(MotionStatus.NOT_FINITE))
    before = np.where(np.isnan(before), task.event_values(time, q, v), before)

    def is_on(now: Motion) -> Any:
        return now.going

    def body(now: Motion) -> Motion:
        return take_step(task, course, now, try_step(task, course, now))

    zero = np.array(0.0)
    start = Motion(
        going=(status < 0.5) & (time < until),
        q=q,
        v=v,
        time=time,
        length=length,
        before=before,
        status=status,
        steps=zero,
        rejected=zero,
        happened=np.full(task.nevents, np.nan),
        residual=zero,
        search=Search.inactive(task.nq, task.nv, task.nevents),
        samples=(np.zeros((task.nsamples, task.nq)), np.zeros((task.nsamples, task.nv))),
        first=first,
        known=~(known < 0.5),
    )
    last: Motion = while_loop(is_on, lambda now: while_loop(is_on, body, now, _ROUNDS), start, _ROUNDS)
    is_passed = (course.sample_times(task) <= last.time)[:, None]  # samples after the end repeat the last state
    ends = last.q, last.v
    between_q, between_v = (np.where(is_passed, x, end[None, :]) for x, end in zip(last.samples, ends, strict=True))
    state = last.q, last.v, last.time, last.length, last.before, last.status
    counts = last.steps, last.rejected, last.happened, last.residual
    return Advance(*state, *counts, between_q, between_v, last.first, last.known.astype(float))
