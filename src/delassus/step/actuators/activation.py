"""Activation dynamics: how the state of an actuator follows its control. The table has one entry for each type.

    @dataclass(frozen=True)
    class Integrator(ActivationDynamics):
        name = "integrator"

        def rate(self, parameters, activation, control):
            return control

    register_activation(Integrator())

An actuator names its dynamics (`Actuator.dynamics`) and has their parameters. Its force law takes the activation in
place of the control: that of the step's beginning, or of its end if the actuator is `early`. Activations depend on
controls alone, not on the motion, so they are advanced once a step of time, before the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import delassus.numpy as np
from delassus.model.transmission import STATELESS, Actuator

LEAST: Final = 1e-15
"""The shortest time constant [s]."""


@dataclass(frozen=True)
class ActivationDynamics:
    """How an activation follows a control; the parameters are those of the actuator (`dynamics_parameters`)."""

    name: ClassVar[str]

    def rate(self, parameters: Sequence[float], activation: Any, control: Any) -> Any:
        """The rate of the activation ȧ [1/s]."""
        raise NotImplementedError(f"the activation dynamics {self.name!r} have no rate: write the method `rate`.")

    def advance(self, parameters: Sequence[float], activation: Any, control: Any, h: Any) -> Any:
        """The activation after a step h [s], before it is clipped. The default is Euler's method."""
        return activation + self.rate(parameters, activation, control) * h


ACTIVATIONS: Final[dict[str, ActivationDynamics]] = {}
"""All activation dynamics by their names."""


def register_activation(dynamics: ActivationDynamics) -> ActivationDynamics:
    """Put activation dynamics into the table, so that actuators can name them."""
    if ACTIVATIONS.get(dynamics.name, dynamics) != dynamics or dynamics.name == STATELESS:
        raise ValueError(f"the activation dynamics {dynamics.name!r} are registered already: choose another name.")
    ACTIVATIONS[dynamics.name] = dynamics
    return dynamics


def count_activations(actuators: Sequence[Actuator]) -> int:
    """How many of some actuators have a state."""
    return sum(actuator.dynamics != STATELESS for actuator in actuators)


def clip_control(actuator: Actuator, control: Any) -> Any:
    """A control within its range."""
    return np.clip(control, *actuator.control_range) if actuator.control_range else control


def next_activation(actuator: Actuator, activation: Any, control: Any, h: Any) -> Any:
    """The activation of an actuator after a step h [s], within its range."""
    dynamics = ACTIVATIONS[actuator.dynamics]
    after = dynamics.advance(actuator.dynamics_parameters, activation, clip_control(actuator, control), h)
    return np.clip(after, *actuator.activation_range) if actuator.activation_range else after


def count_clipped(actuators: Sequence[Actuator], control: Any) -> Any:
    """How many controls () of actuators with a state are beyond their range."""
    count = np.array(0.0)
    for actuator, u in zip(actuators, control, strict=True):
        if actuator.dynamics != STATELESS and actuator.control_range:
            count = count + np.where(clip_control(actuator, u) != u, 1.0, 0.0)
    return count


def activate(actuators: Sequence[Actuator], activation: Any, control: Any, h: Any) -> tuple[Any, Any]:
    """Inputs (nu,) of the force laws in a step h [s], and the activations (na,) at its end.

    Actuators without a state take their control. Without any state, both arguments are what is returned.
    """
    if not count_activations(actuators):
        return control, activation
    signals: list[Any] = []
    after: list[Any] = []
    for actuator, u in zip(actuators, control, strict=True):
        if actuator.dynamics == STATELESS:
            signals.append(u)
            continue
        now = activation[len(after)]
        after.append(next_activation(actuator, now, u, h))
        signals.append(after[-1] if actuator.early else now)
    return np.stack(signals), np.stack(after)
