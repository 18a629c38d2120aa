"""Integrating activation dynamics, ȧ = u."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from delassus.step.actuators.activation import ActivationDynamics, register_activation


@dataclass(frozen=True)
class Integrator(ActivationDynamics):
    """The activation is the integral of the control; MJCF's dyntype "integrator"."""

    name = "integrator"

    def rate(self, parameters: Sequence[float], activation: Any, control: Any) -> Any:
        """The rate of the activation: the control."""
        return control


register_activation(Integrator())
