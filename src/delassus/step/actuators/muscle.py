"""MuJoCo's muscles: Millard's activation dynamics, and force-length-velocity curves.

Lengths L are in units of the optimal length L₀ of the muscle, velocities V in units of v_max L₀ per second. L₀ follows
from the range of the actuator's length: l₀ … l₁ is mapped to L = r₀ … r₁. The force shortens the muscle,

    f = -F (a FL(L) FV(V) + FP(L)),

where F is the peak force. FL consists of four parabolas between l_min and l_max, with its maximum at L = 1. FV is 0 at
V = -1, 1 at rest, and fv_max for fast lengthening, with parabolas in between. The passive force FP is a parabola for
1 < L < (1 + l_max)/2, where it reaches fp_max / 2, and linear beyond.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.model.transmission import Actuator
from delassus.step.actuators.activation import LEAST, ActivationDynamics, register_activation
from delassus.step.actuators.force_law import ForceLaw, register_law


@dataclass(frozen=True)
class MuscleActivation(ActivationDynamics):
    """ȧ = (u - a)/τ, where τ [s] grows with a for activation and falls with it for deactivation.

    Parameters: τ of activation and of deactivation [s], and the width of the range of u - a in which τ is blended
    smoothly between both; zero for a switch.
    """

    name = "muscle"

    def rate(self, parameters: Sequence[float], activation: Any, control: Any) -> Any:
        """(u - a)/τ for u within 0 and 1."""
        rising, falling, width = parameters[:3]
        scale = 0.5 + 1.5 * np.clip(activation, 0.0, 1.0)
        activating, deactivating = rising * scale, falling / scale
        difference = np.clip(control, 0.0, 1.0) - activation
        if width < LEAST:
            tau = np.where(difference > 0.0, activating, deactivating)
        else:
            x = np.clip(difference / width + 0.5, 0.0, 1.0)
            tau = deactivating + (activating - deactivating) * (x * x * x * (3.0 * x * (2.0 * x - 5.0) + 10.0))
        return difference / np.maximum(tau, LEAST)


@dataclass(frozen=True)
class MuscleLaw(ForceLaw):
    """The force of a muscle as a function of activation, length and velocity.

    Parameters: r₀, r₁, the peak force F [N], l_min, l_max, v_max [1/s], fp_max, fv_max, and l₀, l₁ [m].
    """

    name = "muscle"

    def force(self, actuator: Actuator, signal: Any, length: Any, rate: Any) -> Any:
        """-F (a FL FV + FP)."""
        r0, r1, peak, shortest, longest, v_max, fp_max, fv_max, l0, l1 = actuator.law_parameters
        optimal = (l1 - l0) / max(r1 - r0, LEAST)
        L = r0 + (length - l0) / max(optimal, LEAST)
        V = rate / max(optimal * v_max, LEAST)
        active = signal * _active_force_length(L, shortest, longest) * _force_velocity(V, fv_max)
        return -peak * (active + _passive_force_length(L, longest, fp_max))


def _active_force_length(L: Any, shortest: float, longest: float) -> Any:
    """FL: four parabolas, 0 at both ends and 1 at L = 1."""
    a, b = 0.5 * (shortest + 1.0), 0.5 * (1.0 + longest)
    x = (L - shortest) / max(a - shortest, LEAST)
    y = (1.0 - L) / max(1.0 - a, LEAST)
    z = (L - 1.0) / max(b - 1.0, LEAST)
    w = (longest - L) / max(longest - b, LEAST)
    falling = np.where(L <= b, 1.0 - 0.5 * z * z, 0.5 * w * w)
    bump = np.where(L <= a, 0.5 * x * x, np.where(L <= 1.0, 1.0 - 0.5 * y * y, falling))
    return np.where((L >= shortest) & (L <= longest), bump, 0.0)


def _force_velocity(V: Any, fv_max: float) -> Any:
    """FV: 0 at V = -1, 1 at rest, `fv_max` for fast lengthening."""
    y = fv_max - 1.0
    lengthening = np.where(V <= y, fv_max - (y - V) * (y - V) / max(y, LEAST), fv_max)
    return np.where(V <= -1.0, 0.0, np.where(V <= 0.0, (V + 1.0) * (V + 1.0), lengthening))


def _passive_force_length(L: Any, longest: float, fp_max: float) -> Any:
    """FP: zero up to L = 1, a parabola up to the middle between 1 and the longest, linear beyond."""
    b = 0.5 * (1.0 + longest)
    width = max(b - 1.0, LEAST)
    x = (L - 1.0) / width
    return fp_max * np.where(L <= 1.0, 0.0, np.where(L <= b, 0.5 * x * x, 0.5 + (L - b) / width))


register_activation(MuscleActivation())
register_law(MuscleLaw())
