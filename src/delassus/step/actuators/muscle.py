"""MuJoCo's muscles: Millard's activation dynamics, and force-length-velocity curves.

Lengths L and velocities V are in units of the optimal length L₀ of the muscle, which follows from the lengths of the
actuator: l from l₀ to l₁ is L from r₀ to r₁. The force pulls,

    f = -F (a FL(L) FV(V) + FP(L)),

with the peak force F, FL a bump of four parabolas between l_min and l_max with its top at 1, FV a parabola from 0 at
V = -1 to 1 at rest and to fv_max for lengthening, and the passive force FP, a parabola from L = 1 on and a line beyond
(1 + l_max)/2, where it is fp_max / 2.
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

    Parameters: τ of activation and of deactivation [s], and the width of u - a over which one goes over into the other;
    zero for a switch.
    """

    name = "muscle"

    def rate(self, parameters: Sequence[float], activation: Any, control: Any) -> Any:
        """(u - a)/τ for u within 0 and 1."""
        rising, falling, width = parameters[:3]
        share = 0.5 + 1.5 * np.clip(activation, 0.0, 1.0)
        activating, deactivating = rising * share, falling / share
        gap = np.clip(control, 0.0, 1.0) - activation
        if width < LEAST:
            tau = np.where(gap > 0.0, activating, deactivating)
        else:
            x = np.clip(gap / width + 0.5, 0.0, 1.0)
            tau = deactivating + (activating - deactivating) * (x * x * x * (3.0 * x * (2.0 * x - 5.0) + 10.0))
        return gap / np.maximum(tau, LEAST)


@dataclass(frozen=True)
class MuscleLaw(ForceLaw):
    """Force by activation, length and velocity.

    Parameters: r₀, r₁, the peak force F [N], l_min, l_max, v_max [1/s], fp_max, fv_max, and l₀, l₁ [m].
    """

    name = "muscle"

    def force(self, actuator: Actuator, signal: Any, length: Any, rate: Any) -> Any:
        """-F (a FL FV + FP)."""
        start, end, peak, shortest, longest, fastest, passive, most, first, last = actuator.law_parameters
        optimal = (last - first) / max(end - start, LEAST)
        L = start + (length - first) / max(optimal, LEAST)
        V = rate / max(optimal * fastest, LEAST)
        active = signal * _by_length(L, shortest, longest) * _by_velocity(V, most)
        return -peak * (active + _passive(L, longest, passive))


def _by_length(L: Any, shortest: float, longest: float) -> Any:
    """FL: four parabolas, 0 at both ends and 1 at L = 1."""
    a, b = 0.5 * (shortest + 1.0), 0.5 * (1.0 + longest)
    x = (L - shortest) / max(a - shortest, LEAST)
    y = (1.0 - L) / max(1.0 - a, LEAST)
    z = (L - 1.0) / max(b - 1.0, LEAST)
    w = (longest - L) / max(longest - b, LEAST)
    falling = np.where(L <= b, 1.0 - 0.5 * z * z, 0.5 * w * w)
    bump = np.where(L <= a, 0.5 * x * x, np.where(L <= 1.0, 1.0 - 0.5 * y * y, falling))
    return np.where((L >= shortest) & (L <= longest), bump, 0.0)


def _by_velocity(V: Any, most: float) -> Any:
    """FV: 0 at V = -1, 1 at rest, `most` for fast lengthening."""
    y = most - 1.0
    lengthening = np.where(V <= y, most - (y - V) * (y - V) / max(y, LEAST), most)
    return np.where(V <= -1.0, 0.0, np.where(V <= 0.0, (V + 1.0) * (V + 1.0), lengthening))


def _passive(L: Any, longest: float, most: float) -> Any:
    """FP: nothing up to L = 1, a parabola up to the middle between 1 and the longest, a line beyond."""
    b = 0.5 * (1.0 + longest)
    width = max(b - 1.0, LEAST)
    x = (L - 1.0) / width
    return most * np.where(L <= 1.0, 0.0, np.where(L <= b, 0.5 * x * x, 0.5 + (L - b) / width))


register_activation(MuscleActivation())
register_law(MuscleLaw())
