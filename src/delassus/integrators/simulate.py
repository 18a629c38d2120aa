"""`simulate_motion`: the motion of a robot under forces, by any integrator, at given output times."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delassus.common.checks import TIME_STEPS, TOLERANCES, Range, check_integer, number_in_range, one_of, real_array
from delassus.common.options import Shortcuts
from delassus.compiler.differentiation.recorded_function import RecordedFunction
from delassus.compiler.graph.parameters import PARAMETERS, Parametric
from delassus.compiler.host.kernel import Kernel, kernel
from delassus.constrained.delassus.scales import row_sizes
from delassus.constrained.projection.project import project as projected
from delassus.constrained.rows.references import constraint_error
from delassus.constraints.mechanism.mechanism import Mechanism, refuse_unilateral
from delassus.integrators.advance import MOST, advance
from delassus.integrators.choice import integrator_named
from delassus.integrators.events import Event, MotionError, trace_function
from delassus.integrators.options import MotionOptions
from delassus.integrators.protocol import Integrator
from delassus.integrators.task import PROJECTIONS, ParametricTask, Task
from delassus.model.checks import warn_of_omissions
from delassus.model.model import Model, ParametricModel
from delassus.output.status import MotionStatus
from delassus.output.trajectory import Trajectory

Floats = NDArray[np.float64]

STARTS: Final = ("project", "refuse", "keep")
"""Treatments of an initial state that violates the constraints."""

_ON: Final = 1e-9
"""Position error, relative to the robot's length or a radian, that counts as zero."""

_CONVERGED: Final = 1e-9
"""Largest accepted residual of an implicit step."""

_STEPS = Range(0.0, np.inf, "positive and finite [s], such as 1e-3", TIME_STEPS.code, True, True)

_SHORTCUTS: Final = Shortcuts("simulate_motion", "mechanism q v tau times events", options=MotionOptions())


def simulate_motion(
    mechanism: Mechanism | Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    tau: ArrayLike | Callable[..., Any] | None = None,
    *,
    times: ArrayLike,
    events: Event | Callable[[Any, Any, Any], Any] | Iterable[Any] = (),
    options: MotionOptions | None = None,
    **shortcuts: Any,
) -> Trajectory:
    """The motion of a robot, one or a batch, under gravity, springs and dampers of joints and tendons, and forces.

    Args:
        mechanism: The robot and its constraints; a model moves with the constraints of its file.
        q: Configurations (…, nq) [rad, m] at the first time.
        v: Velocities (…, nv) [rad/s, m/s]; zero by default.
        tau: Generalized forces [N·m, N]: constants (…, nv); or (times - 1, …, nv), with one axis more than states have,
            constant between successive times; a function of time [s], q and v of one state that returns (nv,), in NumPy
            (`delassus.numpy`); or a kernel (model, time, q, v) -> (nv), compiled with the rest.
        times: (times,) [s] output times; the first is that of the initial state.
        events: Functions of time, q and v of one state, or `Event`s, whose zeros are recorded; by default they end the
            motion.
        options: A `MotionOptions`: integrator, projection, parameters.
        **shortcuts: Fields of the options: method, tolerance, step, dense, max_steps (integrator); project, start
            (projection).

    >>> log = dl.simulate_motion(dl.load("pendulum"), [1.0], times=[0.0, 0.5, 1.0])
    >>> log.q.shape
    (3, 1)
    """
    (options,) = _SHORTCUTS.fill(shortcuts, options=options)
    choice = options.integrator
    robot = _mechanism(mechanism)
    refuse_unilateral(robot, "simulate_motion")
    warn_of_omissions(robot.plain.model)
    integrator = integrator_named(choice.method)
    t = _times(times)
    q_now, v_now, forces = _states(robot, q, v, tau, len(t) - 1)
    projection = _projection(options.projection.project) if robot.m else "none"
    happenings = _events(robot, events)
    control = trace_function("tau", _function(tau, robot), robot, (robot.nv,)) if callable(tau) else None
    samples = _samples(choice.dense, integrator)
    task = _task(robot, integrator, control, happenings, projection, samples)
    errors = _tolerance(choice.tolerance, integrator)
    lengths = _lengths(t, choice.step, integrator)
    most = _most(choice.max_steps)

    parameters = _parameters(robot, options.parameters)
    batch = _batch(q=q_now.shape[:-1], tolerance=errors.shape, **{name: x.shape[:-1] for name, x in parameters.items()})
    q_now, v_now = (np.broadcast_to(x, (*batch, x.shape[-1])) for x in (q_now, v_now))
    q_now, v_now, status = _prepare_start(robot, q_now, v_now, t[0], options.projection.start, parameters)
    time, status = np.full(batch, t[0]), np.broadcast_to(status, batch).astype(float)
    length = np.full(batch, lengths[0])
    before = np.full((*batch, task.nevents), np.nan)  # the first call computes them
    first, known = np.zeros((*batch, robot.nv)), np.zeros(batch)
    history, counts, happened, residual = [(q_now, v_now)], np.zeros((2, *batch)), [], np.zeros(batch)
    for k, until in enumerate(t[1:]):
        if not integrator.adaptive:
            length = np.full(batch, lengths[k])
        force = forces[min(k, len(forces) - 1)]
        known = known if len(forces) == 1 else np.zeros(batch)  # accelerations change when forces do
        result = advance(
            task, q_now, v_now, force, time, until, length, errors, before, status, most, first, known, **parameters
        )
        q_now, v_now, time, length, before, status = result[:6]
        if samples:
            inside = (np.moveaxis(x, -2, 0) for x in (result.between_q, result.between_v))
            history += zip(*inside, strict=True)
        history.append((q_now, v_now))
        first, known = result.first, result.known
        counts += result.steps, result.rejected
        happened.append(result.happened)
        residual = np.maximum(residual, result.residual)
    unsolved = (residual > _CONVERGED) & (status == MotionStatus.DONE)
    status = np.where(unsolved, float(MotionStatus.NOT_CONVERGED), status)
    t_all = _with_samples(t, samples)
    event_times = _in_place(np.stack(happened).repeat(samples + 1, axis=0), t_all)
    return Trajectory(
        t_all,
        np.stack([x for x, _ in history]),
        np.stack([x for _, x in history]),
        status.astype(int),
        np.asarray(time),
        counts[0].astype(int),
        counts[1].astype(int),
        residual,
        {event.name: event_times[..., k] for k, event in enumerate(happenings)},
        robot,
        parameters=parameters.get(PARAMETERS),
        tau=_forces_at_times(forces, samples, len(t_all))
        if control is None
        else partial(_applied_forces, task, parameters),
    )


@kernel("(nq),(nv),()->(nv)")
def control_force(task: Task, q: Any, v: Any, time: Any) -> Floats:
    """The forces (nv,) of a user function."""
    assert task.control is not None
    return task.control(time, q, v)[0]


def _applied_forces(task: Task, parameters: dict[str, Floats], time: Floats, q: Floats, v: Floats) -> Floats:
    """Forces (times, …, nv) of a function, at the states of a trajectory."""
    forces: Floats = control_force(task, q, v, time, **parameters)
    return forces


def _forces_at_times(forces: Floats, samples: int, times: int) -> Floats:
    """(times, …, nv): at each time the forces of the span that begins there; at the last time those of the last
    span.
    """
    if len(forces) == 1:
        return np.broadcast_to(forces, (times, *forces.shape[1:]))
    return np.concatenate([forces.repeat(samples + 1, axis=0), forces[-1:]])


@lru_cache(maxsize=64)
def _task(
    robot: Mechanism,
    integrator: Integrator,
    control: RecordedFunction | None,
    events: tuple[Event, ...],
    projection: str,
    samples: int,
) -> Task:
    """The task, cached, since kernels look up their code by its identity."""
    kind = ParametricTask if isinstance(robot, Parametric) else Task
    return kind(robot, integrator, control, events, projection, samples)  # type: ignore[arg-type]


# --- checks of arguments ------------------------------------------------------------------------------------------


def _mechanism(robot: Any) -> Mechanism:
    mechanism = _of_model(robot) if isinstance(robot, (Model, ParametricModel)) else robot
    if not isinstance(mechanism, Mechanism):
        raise MotionError(
            f"simulate_motion needs a Mechanism or a Model, not a {type(robot).__name__}.", code="wrong-type"
        )
    return mechanism


@lru_cache(maxsize=64)
def _of_model(model: Model | ParametricModel) -> Mechanism:
    """The mechanism of a model, cached, since kernels look up their code by its identity."""
    return Mechanism(model)


def _parameters(robot: Mechanism, parameters: Any) -> dict[str, Floats]:
    """The parameters (…, nparameters) as an input of kernels, if there are any."""
    if not isinstance(robot, Parametric):
        if parameters is not None:
            raise MotionError(
                "this mechanism has no parameters; create one from model.parametric(…).", code="not-parametric"
            )
        return {}
    values = np.array(real_array("parameters", robot.parameters() if parameters is None else parameters))
    if values.shape[-1:] != (robot.nparameters,):
        raise MotionError(
            f"parameters has shape {values.shape}; its last axis must have {robot.nparameters} values.",
            code="wrong-shape",
        )
    return {PARAMETERS: values}


def _function(tau: Any, robot: Mechanism) -> Callable[[Any, Any, Any], Any]:
    """A function of time, q and v."""
    return (lambda time, q, v: tau(robot.model, time, q, v)) if isinstance(tau, Kernel) else tau


def _times(times: ArrayLike) -> Floats:
    t = np.array(real_array("times", times))
    if t.ndim != 1 or len(t) < 2:
        raise MotionError(
            f"times has shape {t.shape}; it must be a list of two or more times, beginning with the initial one.",
            code="wrong-shape",
        )
    if not np.all(np.isfinite(t)):
        raise MotionError(f"times[{int(np.argmin(np.isfinite(t)))}] is not a finite number.", code="not-finite")
    intervals = np.diff(t)
    if not np.all(intervals > 0.0):
        k = int(np.argmin(intervals > 0.0))
        raise MotionError(
            f"times must increase: times[{k}] is {t[k]:g} s and times[{k + 1}] is {t[k + 1]:g} s.",
            code="not-increasing",
        )
    return t


def _states(robot: Mechanism, q: ArrayLike, v: Any, tau: Any, spans: int) -> tuple[Floats, Floats, Floats]:
    """Configurations, velocities and forces (spans or 1, …), of a common batch."""
    arrays = []
    for name, value, size in (
        ("q", q, robot.nq),
        ("v", np.zeros(robot.nv) if v is None else v, robot.nv),
        ("tau", np.zeros(robot.nv) if tau is None or callable(tau) else tau, robot.nv),
    ):
        array = np.array(real_array(name, value))
        if array.shape[-1:] != (size,):
            raise MotionError(
                f"{name} has shape {array.shape}; its last axis must have the {size} values of a state.",
                code="wrong-shape",
            )
        arrays.append(array)
    q_all, v_all, forces = arrays
    if forces.ndim > max(q_all.ndim, v_all.ndim):
        if len(forces) != spans:
            raise MotionError(
                f"tau has shape {forces.shape}: with one axis more than states have, the first counts the "
                f"spans from each time to the next, {spans} here. For a batch of forces pass a batch of q.",
                code="wrong-shape",
            )
    else:
        forces = forces[None]
    batch = _batch(q=q_all.shape[:-1], v=v_all.shape[:-1], tau=forces.shape[1:-1])
    q_all, v_all = (np.broadcast_to(x, (*batch, x.shape[-1])) for x in (q_all, v_all))
    return q_all, v_all, forces


def _batch(**shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The broadcast batch axes."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        description = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise MotionError(f"the batches do not broadcast: {description}.", code="batch-mismatch") from None


def _projection(project: Any) -> str:
    if isinstance(project, bool):
        return "steps" if project else "none"
    return one_of("project", project, PROJECTIONS)


def _events(robot: Mechanism, events: Any) -> tuple[Event, ...]:
    is_single = isinstance(events, (Event, np.ndarray)) or callable(events) or not isinstance(events, Iterable)
    entries = (events,) if is_single else tuple(events)
    traced = [(x if isinstance(x, Event) else Event(x)).on(robot) for x in entries]
    names = [event.name for event in traced]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise MotionError(
            f"two events are called {twice[0]!r}; rename one with Event(function, name=…).",
            code="duplicate-name",
        )
    return tuple(traced)


def _tolerance(tolerance: ArrayLike, integrator: Integrator) -> Floats:
    values = np.array(real_array("tolerance", tolerance))
    for worst in (values.min(initial=1e-8), values.max(initial=1e-8)):
        number_in_range("tolerance", float(worst), TOLERANCES)
    if integrator.adaptive and values.min(initial=1e-8) < 1e-15:
        raise MotionError(
            f"the tolerance is {values.min():g}; it must be 1e-13 or more, since rounding errors are about 1e-16.",
            code="tolerance-out-of-range",
        )
    return values


def _lengths(t: Floats, step: Any, integrator: Integrator) -> Floats:
    """The lengths of steps [s] between successive times."""
    intervals = np.diff(t)
    if step is None:
        if not integrator.adaptive:
            raise MotionError(
                f"{integrator.name} takes steps of a fixed length; pass it, such as step=1e-3.",
                code="missing-argument",
            )
        return np.asarray(intervals / 100.0)
    step = number_in_range("step", step, _STEPS)
    if integrator.adaptive:
        return np.minimum(intervals, step)
    counts = np.ceil(intervals / step - 1e-9)
    if counts.max() > MOST:
        raise MotionError(
            f"a step of {step:g} s makes {counts.max():.1e} steps from one time to the next; the maximum is "
            f"{MOST:.0e}.",
            code="out-of-range",
        )
    return np.asarray(intervals / np.maximum(counts, 1.0))


def _most(max_steps: Any) -> float:
    check_integer("max_steps", max_steps, 1, int(MOST))
    return float(max_steps)


def _samples(dense: Any, integrator: Integrator) -> int:
    dense = check_integer("dense", dense, 0, 1000)
    if dense and not integrator.has_dense_output:
        raise MotionError(
            f"{integrator.name} has no dense output; pass more times, or use dopri5.", code="not-supported"
        )
    return dense


def _with_samples(t: Floats, samples: int) -> Floats:
    """The output times with those in between."""
    shares = np.arange(samples + 1) / (samples + 1)
    return np.append((t[:-1, None] + np.diff(t)[:, None] * shares).ravel(), t[-1])


def _in_place(happened: Floats, t: Floats) -> Floats:
    """Times of events (times - 1, …) [s] in the spans where they occurred, NaN elsewhere."""
    low, high = (x.reshape(-1, *(1,) * (happened.ndim - 1)) for x in (t[:-1], t[1:]))
    return np.where((happened > low) & (happened <= high), happened, np.nan)


def _prepare_start(
    robot: Mechanism, q: Floats, v: Floats, time: float, start: Any, parameters: dict[str, Floats]
) -> tuple[Floats, Floats, Any]:
    """The initial state after its treatment, and its status."""
    one_of("start", start, STARTS)
    done_status = float(MotionStatus.DONE)
    if not robot.m or start == "keep":
        return q, v, np.full(q.shape[:-1], done_status)
    q_on, v_on = projected(robot, q, v, time=time, iterations=50, **parameters)
    if start == "refuse":
        _refuse("start", _off(robot, q, time, parameters), "robot's lengths or radians")
        _refuse("velocity of the start", np.abs(v_on - v).max(-1) / (1.0 + np.abs(v).max(-1)), "of itself, or of 1/s")
        return q, v, np.full(q.shape[:-1], done_status)
    is_finite = np.isfinite(q).all(-1) & np.isfinite(v).all(-1)
    is_closed = ~is_finite | (_off(robot, q_on, time, parameters) <= _ON)
    keep = ~np.asarray(is_finite)[..., None]
    status = np.where(is_closed, done_status, float(MotionStatus.NOT_CLOSED))
    return np.where(keep, q, q_on), np.where(keep, v, v_on), status


def _off(robot: Mechanism, q: Floats, time: float, parameters: dict[str, Floats]) -> Any:
    """The largest error of each state, relative to the robot's length or a radian."""
    return np.abs(constraint_error(robot, q, time=time, **parameters) / np.array(row_sizes(robot))).max(-1)


def _refuse(label: str, error: Any, unit: str) -> None:
    """Raise an error if a constraint error exceeds rounding."""
    if np.any(error > _ON):
        where = (
            f" of item {', '.join(map(str, np.unravel_index(int(np.argmax(error)), error.shape)))}"
            if error.ndim
            else ""
        )
        raise MotionError(
            f"the {label}{where} violates the constraints: its error is {error.max():.3g} ({unit}). Use dl.assemble or "
            'dl.project compute one that does; start="project" calls them.',
            code="constraints-violated",
        )
