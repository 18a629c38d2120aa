"""Argument checks of predictive sampling: limits, noise, costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import real_array
from delassus.compiler.host.kernel import Kernel
from delassus.errors import BadArgument, NotANumber

if TYPE_CHECKING:
    from delassus.simulation.simulation import Simulation

Array = NDArray[np.float64]

NOISE = 0.3
"""Default standard deviation of samples, relative to half of the controls' range."""


class SamplingError(BadArgument):
    """Invalid arguments of predictive sampling."""


def control_limits(sim: Simulation) -> tuple[Array, Array]:
    """Lower and upper limits of controls (nu,) of a simulation, infinite without limits.

    Those of its actuators' controls, of the forces of plain motors, or the joints' effort limits without actuators.
    """
    scene = sim.scene
    if not scene.actuators:
        most = np.asarray(sim.model.effort_limit, float)[list(sim.model.actuated_velocities)]
        return -most, most
    ranges = np.tile([-np.inf, np.inf], (sim.nu, 1))
    for row, actuator in zip(ranges, scene.actuators, strict=True):
        plain = actuator.gain[0] > 0.0 and not any((*actuator.gain[1:], *actuator.bias))
        if actuator.control_range:
            row[:] = actuator.control_range
        elif actuator.force_range and plain:
            row[:] = np.array(actuator.force_range) / actuator.gain[0]
    return ranges[:, 0], ranges[:, 1]


def limits_of(sim: Simulation, limits: Any) -> tuple[Array, Array]:
    """Limits within those of the simulation: None, values (nu,) or one for ±, or a pair of lower and upper ones."""
    lower, upper = control_limits(sim)
    if limits is None:
        return lower, upper
    pair = limits if isinstance(limits, tuple) and len(limits) == 2 else None
    bounds = [real_array("limits", x) for x in (pair if pair is not None else (limits,))]
    try:
        low, high = bounds if pair is not None else (-bounds[0], bounds[0])
        low, high = np.broadcast_to(low, (sim.nu,)), np.broadcast_to(high, (sim.nu,))
    except ValueError:
        raise SamplingError(
            f"limits is {limits!r}; it must be one value or {sim.nu} values for ±, or a pair (lower, upper).",
            code="wrong-shape",
        ) from None
    if not np.all(low <= high):
        raise SamplingError(
            f"limits is {limits!r}; the upper limits must not be below the lower ones.", code="empty-interval"
        )
    overlap = np.maximum(low, lower), np.minimum(high, upper)
    if not np.all(overlap[0] <= overlap[1]):
        raise SamplingError(
            f"limits is {limits!r}, and the actuators have limits from {lower} to {upper}; the two must overlap.",
            code="empty-interval",
        )
    return overlap


def noise_of(sim: Simulation, noise: Any, lower: Array, upper: Array) -> Array:
    """Standard deviations (nu,), by default a fraction of the range of the controls."""
    if noise is None:
        half = 0.5 * (upper - lower)
        if not np.all(np.isfinite(half)):
            raise SamplingError(
                "noise is missing, and the controls have no limits to derive it from; pass a standard deviation for "
                "all controls or one for each, or limits.",
                code="missing-argument",
            )
        return NOISE * half
    deviation = real_array("noise", noise)
    try:
        deviations = np.broadcast_to(deviation, (sim.nu,)).copy()
    except ValueError:
        raise SamplingError(
            f"noise is {noise!r}; it must be one value or {sim.nu} values.", code="wrong-shape"
        ) from None
    if not (np.all(np.isfinite(deviations)) and np.all(deviations >= 0.0) and np.any(deviations > 0.0)):
        raise SamplingError(
            f"noise is {noise!r}; standard deviations must be finite, and at least one positive.", code="out-of-range"
        )
    return deviations


def traced_cost(sim: Simulation, label: str, cost_function: Any, forms: str) -> Callable[..., Any] | None:
    """A cost that is compiled into the rollouts, as a function of one state; None if it is not a kernel."""
    if not isinstance(cost_function, Kernel):
        return None
    cost: Kernel[..., Any] = cost_function

    def call_checked(*state: Any) -> Any:
        try:
            value = cost(sim.model, *state)
        except (TypeError, ValueError, OverflowError) as error:
            raise SamplingError(
                f"{cost.name} cannot be used as the {label}, a kernel {forms} -> (): {error}", code="function-failed"
            ) from error
        if np.shape(value) != ():
            raise SamplingError(
                f"{cost.name} returns an array of shape {np.shape(value)}; the {label} must be a scalar.",
                code="wrong-shape",
            )
        return value

    return call_checked


def call_cost(label: str, cost_function: Callable[..., Any], shape: tuple[int, ...], *states: Any) -> Array:
    """Call a cost function for all states, and check the shape of its result."""
    try:
        return np.broadcast_to(real_array(f"what the {label} gave", cost_function(*states)), shape)
    except NotANumber as error:
        raise SamplingError(str(error), code=error.code) from None
    except Exception as error:
        arrays = ", ".join(str(np.shape(x)) for x in states)
        raise SamplingError(
            f"the {label} failed for arrays of shapes {arrays}, where it must return shape {shape}: "
            f"{type(error).__name__}, {error}",
            code="function-failed",
        ) from error
