"""Controls of a run: none, arrays, functions of the whole batch, or kernels that are compiled into the step."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from delassus.common.checks import check_integer, real_array
from delassus.compiler.host.kernel import Kernel
from delassus.errors import short
from delassus.simulation.checks import RunError, SimulationError, fits
from delassus.simulation.policies.errors import PolicyError
from delassus.simulation.policies.kernels import kernel_with
from delassus.simulation.policies.policy import CompiledPolicy
from delassus.simulation.setup import Setup
from delassus.step.bodies.kernels import period_kernel

LONGEST_DELAY: Final = 10_000
"""Largest delay of controls, in control periods."""


class ControlError(RunError):
    """A controller raised an error at a `time` [s]; `log` is the run up to that time."""

    code = "function-failed"


@dataclass(frozen=True, eq=False)
class Delayed:
    """Controls that reach the robot with a delay: `sim.run(q0, control=Delayed(policy, 2), steps=500)`.

    Attributes:
        control: Any control that `run` takes, except a kernel or a policy.
        periods: The delay in control periods, zero or more: one number, or (…) one for each environment. Until then,
            the first control acts.

    >>> dl.simulation.Delayed(np.zeros(12), periods=2).periods
    2
    """

    control: Any
    periods: Any = 1


@dataclass(frozen=True)
class Control:
    """The number of periods of a run, their kernel, and the controls of each period.

    Attributes:
        steps: Number of control periods.
        kernel: The kernel of a period.
        at: Returns the controls of a period, as a tuple of one array, from its index, times (…), configuration and
            velocity.
        asks: Whether a Python function of configuration and velocity computes the controls.
        ahead: Returns the controls (n, nu) or (nu,) of n periods from an index on, for one environment; None if they
            are not known in advance.
        policy: The `CompiledPolicy` in the kernel; None without.
    """

    steps: int
    kernel: Kernel[..., Any]
    at: Callable[[int, Any, Any, Any], tuple[Any, ...]]
    asks: bool = False
    ahead: Callable[[int, int], Any] | None = None
    policy: CompiledPolicy | None = None


def control_of(sim: Setup, control: Any, steps: int | None, batch: tuple[int, ...]) -> Control:
    """Check the user's `control`, and wrap it."""
    steps = None if steps is None else check_integer("steps", steps, 0)
    if isinstance(control, Delayed):
        return _delayed(control_of(sim, control.control, steps, batch), control.periods, batch)
    if isinstance(control, CompiledPolicy):
        return with_policy(sim, control_of(sim, control.reference, steps, batch), control)
    if control is not None and not callable(control):
        return _from_array(sim, real_array("control", control), steps, batch)
    if steps is None:
        raise SimulationError(
            "steps is missing: only an array (steps, …, nu) of controls determines the number of periods.",
            code="missing-argument",
        )
    if isinstance(control, Kernel):
        return control_of(sim, _policy_of(sim, control), steps, batch)
    if control is None:
        none = np.zeros(sim.nu)
        return Control(int(steps), period_kernel(sim.scene), lambda *_: (none,), ahead=lambda k, n: none)

    nu = sim.nu

    def ask(k: int, time: Any, q: Any, v: Any) -> tuple[Any, ...]:
        try:
            u = control(time, q, v)
            if type(u) is np.ndarray and u.shape == (nu,) and u.dtype == np.float64:
                return (u,)
            u = real_array("the result of the controller", u)
        except Exception as error:
            now = _latest(time)
            raise ControlError(
                f"the controller failed at {now:g} s: {type(error).__name__}, {error}", now, code="function-failed"
            ) from error
        if u.shape[-1:] != (nu,) or not fits(u.shape[:-1], batch):
            now = _latest(time)
            raise ControlError(
                f"the controller returned an array of shape {u.shape} at {now:g} s; the shape must be ({nu},) or "
                f"{(*batch, nu)}.",
                now,
                code="wrong-shape",
            )
        return (u,)

    return Control(int(steps), period_kernel(sim.scene), ask, asks=True)


def with_policy(sim: Setup, control: Control, policy: CompiledPolicy) -> Control:
    """A control with a policy in the period, which reads it."""
    if control.policy is not None:
        raise SimulationError(
            "the reference of a policy is compiled into the step itself; it must be an array or a function: call that "
            "kernel in the policy.",
            code="not-supported",
        )
    return replace(control, kernel=kernel_with(policy, sim.scene), policy=policy)


def _delayed(control: Control, periods: Any, batch: tuple[int, ...]) -> Control:
    """Controls with a delay; the latest ones are kept as long as an environment may need them."""
    late = np.asarray(periods)
    if late.dtype.kind not in "iu" or np.any(late < 0) or np.any(late > LONGEST_DELAY) or not fits(late.shape, batch):
        raise SimulationError(
            f"the delay is {short(repr(periods))} control periods; it must be an integer from 0 to {LONGEST_DELAY}, or "
            f"an array of them that fits the batch axes {batch}.",
            code="out-of-range",
        )
    if control.policy is not None:
        raise SimulationError(
            "a kernel or policy is compiled into the step and cannot be delayed: pass a Python function, or keep the "
            "last controls in the memory of the policy.",
            code="not-supported",
        )
    last: deque[Any] = deque(maxlen=int(late.max(initial=0)) + 1)

    def at(k: int, time: Any, q: Any, v: Any) -> tuple[Any, ...]:
        (u,) = control.at(k, time, q, v)
        last.appendleft(np.array(u))
        if not late.ndim:
            return (last[min(int(late), len(last) - 1)],)
        history = np.stack(np.broadcast_arrays(*last)) + np.zeros((1, *batch, 1))
        ages = np.minimum(np.broadcast_to(late, batch), len(last) - 1)
        return (np.take_along_axis(history, ages[None, ..., None], 0)[0],)

    return replace(control, at=at, ahead=None)


def _latest(time: Any) -> float:
    """The largest of times (…) [s]."""
    return float(np.max(time, initial=0.0))


def _from_array(sim: Setup, u: Any, steps: int | None, batch: tuple[int, ...]) -> Control:
    if not sim.nu and u.shape[-1:] != (0,):
        raise SimulationError(
            f"the controls have shape {u.shape}, but the robot has no actuators or actuated joints: omit control=.",
            code="wrong-shape",
        )
    every = "".join(f"{n}, " for n in batch)
    forms = f"({sim.nu},) or (steps, {sim.nu})" + (f" or (steps, {every}{sim.nu})" if batch else "")
    if u.ndim == 0 or u.shape[-1] != sim.nu:
        raise SimulationError(
            f"the controls have shape {u.shape}; for this robot the shape must be {forms}.", code="wrong-shape"
        )
    if u.ndim == 1:
        if steps is None:
            raise SimulationError(
                f"steps is missing: controls of shape {u.shape} do not determine the number of periods.",
                code="missing-argument",
            )
        return Control(int(steps), period_kernel(sim.scene), lambda *_: (u,), ahead=lambda k, n: u)
    if not fits(u.shape[1:-1], batch):
        raise SimulationError(
            f"the controls have shape {u.shape}; for this batch the shape must be {forms}.", code="wrong-shape"
        )
    count = len(u) if steps is None else int(steps)
    per_item = steps is not None and fits(u.shape[:-1], batch)
    in_time, constant = _readings(u.shape, batch, count)
    if count > len(u):
        hint = f" If they are one for each environment, {constant}." if per_item else ""
        raise SimulationError(
            f"steps is {count}; it must be at most {len(u)}, the number of periods of the controls.{hint}",
            code="wrong-shape",
        )
    if per_item and len(u) > 1:
        raise SimulationError(
            f"the controls have shape {u.shape}, which is ambiguous for the batch axes {batch} and steps={steps}. "
            f"If they are one for each period, {in_time}; if they are one for each environment, {constant}.",
            code="conflicting-arguments",
        )
    return Control(count, period_kernel(sim.scene), lambda k, *_: (u[k],), ahead=lambda k, n: u[k : k + n])


def _readings(shape: tuple[int, ...], batch: tuple[int, ...], steps: int) -> tuple[str, str]:
    """Hints to write controls unambiguously: as one for each period, and as one for each environment."""
    ones = len(batch) + 2 - len(shape)
    in_time, constant = (shape[0], *(1,) * ones, *shape[1:]), (steps, *batch, shape[-1])
    return f"pass control.reshape{in_time}", f"pass np.broadcast_to(control, {constant})"


def _policy_of(sim: Setup, control: Kernel[..., Any]) -> CompiledPolicy:
    """A user's kernel as a policy, which the kernel keeps for each robot: they are freed together."""
    model, nu = sim.model, sim.nu
    policies: dict[Any, CompiledPolicy] = vars(control).setdefault("_policies", {})
    if (model, nu) in policies:
        return policies[model, nu]

    def call_control(now: Any) -> Any:
        try:
            u = control(model, now.time, now.q, now.v)
        except (TypeError, ValueError, OverflowError) as error:
            raise PolicyError(
                f"{control.name} failed as a control, which must be a kernel (model, time, q, v) -> (nu,): {error}",
                code="function-failed",
            ) from error
        if np.shape(u) != (nu,):
            raise PolicyError(
                f"{control.name} returns an array of shape {np.shape(u)}; the shape of a control must be ({nu},).",
                code="wrong-shape",
            )
        return u

    policies[model, nu] = CompiledPolicy(call_control)
    return policies[model, nu]
