"""Detects which contacts are impacts, and computes their rebound velocities.

A contact is an impact if its gap would close in the free step and it approaches faster than 2·g·h. Slower
contacts come to rest: their gap may close in the step. A row with the bias -gap/h would reduce the approach speed
before the impact. Instead, the step is split where the first gap closes, after a fraction s:

    v₁ = v + s (v_f - v),      v₂ = v₁ + M⁻¹ Jᵀ Λ with  J v₂ ≥ -e J v₁,      v⁺ = v₂ + (1-s) (v_f - v),

where v_f is the velocity without impulses. Positions are integrated with the velocity before the impact for the first
part of the step, and with the velocity after it for the rest. Positions integrated with (1-β) v + β v⁺ are those of a
motion with the velocity v + (β-½)(v_f - v); restitution is applied to this velocity, so that a ball dropped from h₀
returns to e² h₀ for any β and any gap within the step.

If positions are integrated with v⁺ over the complete step, the impact is at its beginning (s = 0), at a height equal to
the gap: see `rebound_at_start`. A contact that would not return to this height remains open.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.model.model import Model
from delassus.step.scheme.blend import Blend

SLOW: Final = 2.0
"""Contacts that approach more slowly than gravity accelerates in this number of steps are not impacts."""


class ImpactPoints(NamedTuple):
    """Impacts in a step.

    Attributes:
        on: (points,) whether a point has an impact.
        share: () the fraction of the step before the first impact; 0 without impacts.
    """

    on: Any
    share: Any

    @property
    def any(self) -> Any:
        """Whether any point has an impact."""
        return np.any(self.on)


def fall_speed(model: Model, h: Any) -> Any:
    """The velocity change [m/s] due to gravity in a step h [s]."""
    return h * np.sqrt(np.sum(np.array(model.gravity) * np.array(model.gravity)))


def detect_impacts(model: Model, blend: Blend, gap: Any, u: Any, u_free: Any, restitution: Any) -> ImpactPoints:
    """Impacts among points (points,), from their gaps, their normal velocities at the start (u) and at the end (u_free)
    of the free step, and their coefficients of restitution e."""
    end_gap = gap + blend.h * blend.velocity(u, u_free)
    open_gap = np.maximum(gap, 0.0)
    share = np.clip(open_gap / np.maximum(open_gap - end_gap, 1e-300), 0.0, 1.0)
    speed = u + share * (u_free - u)
    on = (restitution > 0.0) & (end_gap <= 0.0) & (speed < -SLOW * fall_speed(model, blend.h))
    first = np.min(np.where(on, share, 1.0))
    return ImpactPoints(on, np.where(np.any(on), first, 0.0))


def rebound_bias(result: ImpactPoints, blend: Blend, u: Any, u_free: Any, restitution: Any) -> Any:
    """The bias b (points,) of impacts, for normal velocities u at the start and u_free at the end of the free step.

    With it, J v⁺ is at least the rebound velocity at the end of the step, and not negative.
    """
    change = u_free - u
    offset = (blend.beta - 0.5) * change
    speed = u + result.share * change + offset
    return np.minimum(restitution * speed + offset - (1.0 - result.share) * change, 0.0)


def rebound_at_start(closing: Any, u: Any, u_free: Any, restitution: Any) -> tuple[Any, Any]:
    """The rebound velocity of an impact at the beginning of a step, and whether the contact leaves the ground.

    `closing` is gap/h. Without impulses, the normal velocity is u at the start of the step and u_free = u + f at its
    end. Half a step after the start it is s = u + ½ f, and ½ s² is the energy that counts. The contact reaches the
    ground with the speed w, where w² = s² - 2 f gap/h. The rebound velocity v⁺ is that for which the impulse
    (v⁺ - u - f)/G dissipates (1 - e²) w²/(2 G): (v⁺ - u - f) (v⁺ + u) = (v⁺ - ½ f)² - s² = -(1 - e²) w².
    """
    f = u_free - u
    speed = u + 0.5 * f
    approach_square = np.maximum(speed * speed - 2.0 * f * closing, 0.0)
    rebound_square = speed * speed - (1.0 - restitution * restitution) * approach_square
    return 0.5 * f + np.sqrt(np.maximum(rebound_square, 0.0)), rebound_square > 0.0


def touching_points(result: ImpactPoints, blend: Blend, gap: Any, u: Any, u_free: Any) -> Any:
    """Whether points (points,) touch at the first impact: the impacts, and points whose gaps are nearly closed."""
    s = result.share
    impact_gap = gap + s * blend.h * blend.velocity(u, u_free)
    tolerance = 1e-3 * blend.h * np.max(np.abs(u))
    return result.any & (result.on | (impact_gap <= tolerance))


def mean_velocity(result: ImpactPoints, blend: Blend, v: Any, change: Any, v_end: Any) -> Any:
    """The velocity (nv,) with which positions are integrated in a step with impacts.

    `v` and `v_end` are the velocities at the start and the end of the step, `change` is v_f - v.
    """
    s = result.share
    first = blend.velocity(v, v + s * change)
    second = blend.velocity(v_end - (1.0 - s) * change, v_end)
    return np.where(result.any, s * first + (1.0 - s) * second, blend.velocity(v, v_end))
