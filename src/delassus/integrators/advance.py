"""The kernel of all integrators: from one output time to the next, in as many steps as each item needs.

Steps of a fixed length are cut at the output time. An adaptive method chooses its own: with the errors e of a step as
multiples of the tolerance, the next one is 0.9 e^(-1/p) times as long, p the order, and one with e > 1 is made again.
Configurations are off by the tolerance times a radian or the robot's length, velocities by that in a second and by the
tolerance times themselves.

An event is a change of sign of a function over a step. The step is then made again, shorter, by regula falsi on real
steps (not on an interpolation), with a bisection now and then, until the zero is enclosed; the item goes on from right
behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.differentiation.recorded import Recorded
from delassus.compiler.graph.parameters import Parametric
from delassus.compiler.host.kernel import kernel
from delassus.compiler.tracing.flow.control import map as along
from delassus.compiler.tracing.flow.control import while_loop
from delassus.constraints.mechanism.mechanism import Mechanism, ParametricMechanism
from delassus.integrators.protocol import Integrator, Step, System
from delassus.integrators.search import Search, crossing
from delassus.integrators.written import Event
from delassus.output.status import MotionStatus

PROJECTIONS: Final = ("none", "velocities", "steps", "stages")
"""What is projected onto the constraints: nothing; velocities after steps; states after steps; and inside them."""

_ROUNDS: Final = 10_000
"""Steps are counted in rounds of so many rounds: compiling a loop takes time in proportion to its bound."""

MOST: Final = _ROUNDS * _ROUNDS
"""Steps from one time to the next."""

CLOSED: Final = 1e-10
"""An error of position after a projection, as a share of the robot's length or of a radian, that counts as none."""

_ROUNDING: Final = 1e-14
"""Steps below this share of the time cannot be told from none."""


@dataclass(frozen=True)
class Task:
    """What is followed, and how: all that decides the code.

    Attributes:
        mechanism: The robot and its constraints.
        integrator: The method.
        control: Forces as a function of time and state, or None.
        events: What may happen.
        projection: One of `PROJECTIONS`.
        samples: How many states are wanted between two output times, by dense output.
    """

    mechanism: Mechanism
    integrator: Integrator
    control: Recorded | None = None
    events: tuple[Event, ...] = ()
    projection: str = "none"
    samples: int = 0

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return self.mechanism.nq

    @property
    def nv(self) -> int:
        """Number of velocities."""
        return self.mechanism.nv

    @property
    def nevents(self) -> int:
        """Numbers kept for events: one at least, since arrays are not empty."""
        return max(1, len(self.events))

    @property
    def nsamples(self) -> int:
        """Places kept for states between output times: one at least."""
        return max(1, self.samples)

    def event_values(self, time: Any, q: Any, v: Any) -> Any:
        """The functions of all events (nevents,)."""
        if not self.events:
            return np.ones(1)
        return np.stack([event.function(time, q, v)[0] for event in self.events])


@dataclass(frozen=True)
class ParametricTask(Task, Parametric):
    """The task of a mechanism with parameters: the kernel takes them, one set per item of a batch."""

    mechanism: ParametricMechanism

    @property
    def nparameters(self) -> int:
        """Number of parameters."""
        return self.mechanism.nparameters

    def parameters(self) -> Any:
        """Those of the model (nparameters,)."""
        return self.mechanism.parameters()

    def with_parameters(self, parameters: Any) -> Task:
        """The task of the mechanism with these."""
        robot = self.mechanism.with_parameters(parameters)
        return Task(robot, self.integrator, self.control, self.events, self.projection, self.samples)


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
        tau: Generalised forces (…, nv) [N·m, N] that stay as they are.
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
    method = task.integrator
    reuses = getattr(method, "first_is_last", False)
    system = System(task.mechanism, tau, task.control, task.projection == "stages")
    sound = np.sum(q) + np.sum(v) + np.sum(tau) + time + until + length + tolerance
    status = np.where(np.isfinite(sound) | (status > 0.5), status, float(MotionStatus.NOT_FINITE))
    before = np.where(np.isnan(before), task.event_values(time, q, v), before)
    begin, shares = time, numpy.arange(1, task.nsamples + 1) / (task.nsamples + 1)
    ends = numpy.array([event.ends for event in task.events] or [False], float)

    def is_on(carry: Any) -> Any:
        going, *_ = carry
        return going > 0.5

    def body(carry: Any) -> Any:
        _, q, v, time, length, before, status, steps, rejected, happened, residual, search, sampled, *ahead = carry
        first, known = ahead
        search = Search(*search)
        rest = until - time
        begins = (known < 0.5) if reuses else np.array(False)  # a step of length zero, to find the first stage
        last = (rest <= length * (1.0 + 1e-9)) & ~search.on & ~begins
        h = np.where(search.on, search.trial(), np.where(last, rest, length))
        h = np.where(begins, 0.0, h)
        made = method.step(system, time, q, v, h, **({"first": first} if reuses else {}))
        new_q, new_v, off = _corrected(task, system, time + h, made)
        closed = off <= CLOSED
        finite = np.isfinite(np.sum(new_q) + np.sum(new_v)) & closed
        fine, factor = finite, np.array(1.0)
        if method.adaptive:
            error = _size(system, made.error, tolerance, v, new_v)
            factor = np.where(finite, np.clip(0.9 * error ** (-1.0 / method.order), 0.2, 5.0), 0.2)
            fine = finite & ((error <= 1.0) | search.on)
        values = task.event_values(time + h, new_q, new_v)
        if task.events:
            search = search.with_step(fine & ~begins, h, before, values, new_q, new_v, task.events, time)
            taken = fine & (~search.on | search.found)
            at_event = search.found
            h = np.where(at_event, search.high, h)
            new_q, new_v = np.where(at_event, search.q, new_q), np.where(at_event, search.v, new_v)
            values = np.where(at_event, search.after, values)
            hit = crossing(task.events, before, values) & at_event
        else:
            taken, at_event, hit = fine, np.array(False), np.array([False])
        taken = taken & ~begins
        reached = taken & last & ~at_event
        now = np.where(taken, np.where(reached, until, time + h), time)
        happened = np.where(hit, now, happened)
        searching = search.on & ~search.found
        longer = np.where(reached, np.maximum(length, h * factor), h * factor)
        shorter = h * np.minimum(factor, 1.0)
        next_length = length
        if method.adaptive:
            next_length = np.where(search.on, length, np.where(taken, longer, np.where(fine, length, shorter)))
            next_length = np.where(begins, length, next_length)
        if made.residual is not None:  # that of a step that could not be taken tells why
            residual = np.maximum(
                residual, np.where(taken | ~finite, np.where(np.isfinite(made.residual), made.residual, 0.0), 0.0)
            )

        why = np.where(closed | np.isnan(off), float(MotionStatus.NOT_FINITE), float(MotionStatus.OPEN))
        if method.adaptive:
            shortest = _ROUNDING * np.maximum(np.abs(time), np.abs(until))
            too_short = ~fine & (begins | (next_length <= shortest))
            status = np.where(too_short, np.where(finite, float(MotionStatus.STEP_SIZE), why), status)
        else:
            status = np.where(finite, status, why)
        status = np.where(np.any(hit & (ends > 0.5)), float(MotionStatus.EVENT), status)
        steps, rejected = steps + np.where(taken, 1.0, 0.0), rejected + np.where(taken | begins, 0.0, 1.0)
        out = (steps + rejected >= most) & (now < until) & (status < 0.5)
        status = np.where(out, float(MotionStatus.STEPS), status)
        going = (status < 0.5) & ((now < until) | searching)
        return (
            going.astype(float),
            np.where(taken, new_q, q),
            np.where(taken, new_v, v),
            now,
            next_length,
            np.where(taken, values, before),
            status,
            steps,
            rejected,
            happened,
            residual,
            tuple(search.unless(search.found)),
            _sampled(task, made, shares * (until - begin) + begin, time, h, now, taken, sampled),
            # That of the last stage, before its projection, which moves a state by less than the step is off.
            np.where(taken | begins, made.last, first) if reuses else first,
            np.where(at_event, 0.0, np.where(taken | begins, 1.0, known)) if reuses else known,
        )

    zero = np.array(0.0)
    start = (
        ((status < 0.5) & (time < until)).astype(float),
        q,
        v,
        time,
        length,
        before,
        status,
        zero,
        zero,
        np.full(task.nevents, np.nan),
        zero,
        tuple(Search.none(task.nq, task.nv, task.nevents)),
        (np.zeros((task.nsamples, task.nq)), np.zeros((task.nsamples, task.nv))),
        first,
        known,
    )
    _, q, v, time, length, before, status, steps, rejected, happened, residual, _, sampled, first, known = while_loop(
        is_on, lambda carry: while_loop(is_on, body, carry, _ROUNDS), start, _ROUNDS
    )
    passed = (shares * (until - begin) + begin <= time)[:, None]  # what comes after an end stays where that was
    between_q, between_v = (np.where(passed, x, end[None, :]) for x, end in zip(sampled, (q, v), strict=True))
    counts = steps, rejected, happened, residual
    return Advance(q, v, time, length, before, status, *counts, between_q, between_v, first, known)


def _corrected(task: Task, system: System, time: Any, made: Step) -> tuple[Any, Any, Any]:
    """The state at the end of a step, projected as it is asked for, and how far it is off after that."""
    if task.projection == "none" or not task.mechanism.m:
        return made.q, made.v, np.array(0.0)
    q, v, off = system.projected(time, made.q, made.v)
    return (made.q, v, np.array(0.0)) if task.projection == "velocities" else (q, v, off)


def _sampled(
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
