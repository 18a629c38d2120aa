"""First-order activation dynamics, ȧ = (u - a)/τ."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.step.actuators.activation import LEAST, ActivationDynamics, register_activation


@dataclass(frozen=True)
class Filter(ActivationDynamics):
    """A filter by Euler's method, as MJCF's dyntype "filter"; its parameter is τ [s]. Stable for steps below 2 τ."""

    name = "filter"

    def rate(self, parameters: Sequence[float], activation: Any, control: Any) -> Any:
        """(u - a)/τ."""
        return (control - activation) / max(parameters[0], LEAST)


@dataclass(frozen=True)
class ExactFilter(Filter):
    """The first-order filter, integrated exactly for a constant control, as MJCF's dyntype "filterexact"."""

    name = "filterexact"

    def advance(self, parameters: Sequence[float], activation: Any, control: Any, h: Any) -> Any:
        """a + ȧ τ (1 - exp(-h/τ))."""
        tau = max(parameters[0], LEAST)
        return activation + self.rate(parameters, activation, control) * tau * (1.0 - np.exp(-h / tau))


register_activation(Filter())
register_activation(ExactFilter())
