"""The affine force law of motors and servos."""

from dataclasses import dataclass
from typing import Any

from delassus.model.transmission import Actuator
from delassus.step.actuators.force_law import ForceLaw, register_law


@dataclass(frozen=True)
class AffineLaw(ForceLaw):
    """f = (g₀ + g₁ l + g₂ l̇) u + b₀ + b₁ l + b₂ l̇."""

    name = "affine"

    def force(self, actuator: Actuator, signal: Any, length: Any, rate: Any) -> Any:
        """The affine force with gain g and bias b of the actuator."""
        (g0, g1, g2), (b0, b1, b2) = actuator.gain, actuator.bias
        return (g0 + g1 * length + g2 * rate) * signal + b0 + b1 * length + b2 * rate

    def slope(self, actuator: Actuator, signal: Any, length: Any, rate: Any, h: Any) -> Any:
        """Derivative of the force with respect to l̇."""
        (_, g1, g2), (_, b1, b2) = actuator.gain, actuator.bias
        return h * (g1 * signal + b1) + (g2 * signal + b2)


register_law(AffineLaw())
