"""The kernel of all integrators: advances from one output time to the next, in as many steps as a state needs.

Steps of a fixed length are cut at the output time. An adaptive method chooses its own: with the errors e of a step as
multiples of the tolerance, the next one is 0.9 e^(-1/p) times as long, p the order, and one with e > 1 is made again.
Configurations are off by the tolerance times a radian or the robot's length, velocities by that in a second and by the
tolerance times themselves.

An event is a change of sign of a function over a step. The step is then made again, shorter, by regula falsi on real
steps (not on an interpolation), with a bisection now and then, until the zero is enclosed; the item goes on from right
behind it.
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
"""Steps are counted in rounds of so many rounds: compiling a loop takes time in proportion to its bound."""

MOST: Final = _ROUNDS * _ROUNDS
"""Steps from one time to the next."""


class Advance(NamedTuple):
    """Where an item is, and how it came there.

    Attributes:
        q: Configuration (…, nq).
        v: Velocity (…, nv).
        time: (…) [s] the output time, or when the motion ended.
        length: (…) [s] of the next step.
        before: (…, nevents) what the functions of events are.
        status: (…) numbers of `MotionStatus`.
        steps: (…) how many were made.
        rejected: (…) how many were made again, or in search of an event.
        happened: (…, nevents) [s] when events were last; NaN if they were not.
        residual: (…) what is left of the equations of implicit steps, at most (see `Step`).
        between_q: (…, nsamples, nq) configurations at even times in between, if they are asked for.
        between_v: (…, nsamples, nv) velocities likewise.
        first: (…, nv) the acceleration there, if the method found it.
        known: (…) whether it did, 1 or 0.
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
    """The state at a later time.

    Args:
        task: What is followed, and how.
        q: Configuration (…, nq).
        v: Velocity (…, nv).
        tau: Generalized forces (…, nv) [N·m, N] that stay as they are.
        time: (…) [s] now.
        until: (…) [s] the output time.
        length: (…) [s] of steps, or of the first one if the method chooses its own.
        tolerance: (…) of steps, if the method chooses its own.
        before: (…, nevents) what the functions of events are, NaN if that is not known.
        status: (…) numbers of `MotionStatus`; what is not DONE stays where it is.
        most: (…) steps.
        first: (…, nv) the acceleration now [rad/s², m/s²], which methods of which the first stage is the last of the
            step before take over.
        known: (…) 1 if it is known, else 0: such methods then find it by a step of length zero.
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
    passed = (course.sample_times(task) <= last.time)[:, None]  # what comes after an end stays where that was
    ends = last.q, last.v
    between_q, between_v = (np.where(passed, x, end[None, :]) for x, end in zip(last.samples, ends, strict=True))
    state = last.q, last.v, last.time, last.length, last.before, last.status
    counts = last.steps, last.rejected, last.happened, last.residual
    return Advance(*state, *counts, between_q, between_v, last.first, last.known.astype(float))
