"""Activation dynamics: how the state of an actuator follows its control. The table has one entry for each type.

    @dataclass(frozen=True)
    class Integrator(ActivationDynamics):
        name = "integrator"

        def rate(self, parameters, activation, control):
            return control

    register_activation(Integrator())

An actuator has the name of its dynamics (`Actuator.dynamics`) and their parameters. Its force law uses the activation
in place of the control: that at the beginning of the step, or that at its end if the actuator is `early`. Activations
depend on controls alone, not on the motion. They are advanced once per time step, before the step.
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
    """Dynamics of an activation that follows a control; parameters are `dynamics_parameters` of the actuator."""

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
    """Add activation dynamics to the table, where actuators refer to them by name."""
    if ACTIVATIONS.get(dynamics.name, dynamics) != dynamics or dynamics.name == STATELESS:
        raise ValueError(f"the activation dynamics {dynamics.name!r} are registered already: choose another name.")
    ACTIVATIONS[dynamics.name] = dynamics
    return dynamics


def count_activations(actuators: Sequence[Actuator]) -> int:
    """The number of actuators with a state."""
    return sum(actuator.dynamics != STATELESS for actuator in actuators)


def clip_control(actuator: Actuator, control: Any) -> Any:
    """A control within its range."""
    return np.clip(control, *actuator.control_range) if actuator.control_range else control


def next_activation(actuator: Actuator, activation: Any, control: Any, h: Any) -> Any:
    """The activation of an actuator after a step h [s], within its range."""
    dynamics = ACTIVATIONS[actuator.dynamics]
    advanced = dynamics.advance(actuator.dynamics_parameters, activation, clip_control(actuator, control), h)
    return np.clip(advanced, *actuator.activation_range) if actuator.activation_range else advanced


def count_clipped(actuators: Sequence[Actuator], control: Any) -> Any:
    """The number () of controls beyond their range, among actuators with a state."""
    count = np.array(0.0)
    for actuator, u in zip(actuators, control, strict=True):
        if actuator.dynamics != STATELESS and actuator.control_range:
            count = count + np.where(clip_control(actuator, u) != u, 1.0, 0.0)
    return count


def activate(actuators: Sequence[Actuator], activation: Any, control: Any, h: Any) -> tuple[Any, Any]:
    """Inputs (nu,) of the force laws in a step h [s], and the activations (na,) at its end.

    The input of an actuator without a state is its control. If no actuator has a state, both arguments are returned
    unchanged.
    """
    if not count_activations(actuators):
        return control, activation
    signals: list[Any] = []
    next_activations: list[Any] = []
    for actuator, u in zip(actuators, control, strict=True):
        if actuator.dynamics == STATELESS:
            signals.append(u)
            continue
        current = activation[len(next_activations)]
        next_activations.append(next_activation(actuator, current, u, h))
        signals.append(next_activations[-1] if actuator.early else current)
    return np.stack(signals), np.stack(next_activations)
