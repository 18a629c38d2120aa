"""Which contacts are impacts, and their rebound speed.

A contact that the free step would lead into the ground strikes if it approaches faster than gravity makes it in two
steps: slower ones come to rest, as contacts whose gap may close. To put -gap/h into the row of a contact that bounces
would take its approach speed off first. Instead, the step is divided where the first gap closes, after a share s of it:

    v₁ = v + s (v_f - v),      v₂ = v₁ + M⁻¹ Jᵀ Λ with  J v₂ ≥ -e J v₁,      v⁺ = v₂ + (1-s) (v_f - v),

v_f the velocity without impulses. Positions move with the first part of the velocities before, and the second after.
Positions that move with (1-β) v + β v⁺ are as those of a motion whose velocity is v + (β-½)(v_f - v): this one is
thrown back, so that a ball that falls from h₀ comes back to e² h₀ whatever β, and whatever a step leaves of its gap.

Where positions move with v⁺ all along the step, as those of a user do who integrates the velocities of a step, the
impact is at the beginning (s = 0), a gap above the ground: see `rebound_at_start`. A contact that would not come back
to the height of the gap is let go there.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.model.model import Model
from delassus.step.scheme.blend import Blend

SLOW: Final = 2.0
"""Contacts that approach more slowly than gravity accelerates in this number of steps are not impacts."""


class ImpactPoints(NamedTuple):
    """Which points have an impact (points,), and the fraction () of the step before the first, or 0."""

    on: Any
    share: Any

    @property
    def any(self) -> Any:
        """Whether any point has an impact."""
        return np.any(self.on)


def fall_speed(model: Model, h: Any) -> Any:
    """The velocity [m/s] that gravity gives in a step h [s]."""
    return h * np.sqrt(np.sum(np.array(model.gravity) * np.array(model.gravity)))


def detect_impacts(model: Model, blend: Blend, gap: Any, before: Any, after: Any, restitution: Any) -> ImpactPoints:
    """Of points with these gaps, velocities of normals as the step begins and freely ends, and e (points,)."""
    left = gap + blend.h * blend.velocity(before, after)
    open_ = np.maximum(gap, 0.0)
    share = np.clip(open_ / np.maximum(open_ - left, 1e-300), 0.0, 1.0)
    speed = before + share * (after - before)
    on = (restitution > 0.0) & (left <= 0.0) & (speed < -SLOW * fall_speed(model, blend.h))
    first = np.min(np.where(on, share, 1.0))
    return ImpactPoints(on, np.where(np.any(on), first, 0.0))


def rebound_bias(found: ImpactPoints, blend: Blend, before: Any, after: Any, restitution: Any) -> Any:
    """b (points,) of points that strike: J v⁺ is at least what -e J v₁ is when the step ends, and not negative."""
    change = after - before
    ahead = (blend.beta - 0.5) * change
    speed = before + found.share * change + ahead
    return np.minimum(restitution * speed + ahead - (1.0 - found.share) * change, 0.0)


def rebound_at_start(closing: Any, before: Any, after: Any, restitution: Any) -> tuple[Any, Any]:
    """The velocity with which an impact at the beginning of a step leaves, and whether it comes off the ground.

    `closing` is gap/h, `before` and `after` are the velocities u and u + f along the normal, without impulses; half a
    step later the velocity is s = u + ½ f, and ½ s² is what energy has of it. The contact meets the ground with w,
    w² = s² - 2 f gap/h, and leaves with v⁺ so that the impulse, (v⁺ - u - f)/G, takes (1 - e²) w²/(2 G) of its energy:
    (v⁺ - u - f) (v⁺ + u) = (v⁺ - ½ f)² - s² = -(1 - e²) w².
    """
    f = after - before
    speed = before + 0.5 * f
    meeting = np.maximum(speed * speed - 2.0 * f * closing, 0.0)
    left = speed * speed - (1.0 - restitution * restitution) * meeting
    return 0.5 * f + np.sqrt(np.maximum(left, 0.0)), left > 0.0


def touching_points(found: ImpactPoints, blend: Blend, gap: Any, before: Any, after: Any) -> Any:
    """Which points (points,) touch at the first impact: the impacting ones, and those whose gaps are nearly closed."""
    s = found.share
    left = gap + s * blend.h * blend.velocity(before, after)
    near = 1e-3 * blend.h * np.max(np.abs(before))
    return found.any & (found.on | (left <= near))


def mean_velocity(found: ImpactPoints, blend: Blend, v: Any, change: Any, after: Any) -> Any:
    """The velocity (nv,) that positions move with where points may strike; `change` is v_f - v."""
    s = found.share
    first = blend.velocity(v, v + s * change)
    second = blend.velocity(after - (1.0 - s) * change, after)
    return np.where(found.any, s * first + (1.0 - s) * second, blend.velocity(v, after))
