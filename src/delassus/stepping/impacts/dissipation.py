"""Restitution that adds no energy: as much of it as there is energy for.

Newton's law says how fast contacts separate, whatever friction does meanwhile, and with friction the two together may
ask for more energy than there was (T. Kane, D. Levinson, 1985). The impulses λ₀ of the plastic impact never do, and
λ₀ + s (λ - λ₀) obeys the laws of friction for all s from 0 to 1, since cones are convex. Its kinetic energy is

    T(s) = T(0) + s yᵀ u₀ + s² ½ yᵀ G y,      y = λ - λ₀,  u₀ = u + G λ₀,

u the velocities of the rows before: the largest s is taken at which T(s) is no more than it was.
"""

from __future__ import annotations

from typing import Any, Final

import delassus.numpy as np

_ROUNDING: Final = 1e-13


def gained(G: Any, u: Any, impulse: Any) -> Any:
    """The kinetic energy () [J] that impulses (m,) of rows with velocities u (m,) add."""
    return np.sum(impulse * (u + 0.5 * (G @ impulse)))


def adds_energy(G: Any, u: Any, impulse: Any) -> Any:
    """Whether impulses (m,) add energy, by more than rounding may."""
    return gained(G, u, impulse) > _ROUNDING * np.sum(np.abs(impulse * u))


def without_gain(G: Any, u: Any, impulse: Any, plastic: Any) -> Any:
    """Impulses (m,) between the plastic ones and some, the nearest to these that add no energy.

    Where plastic ones add energy, since springs do, no more than theirs is allowed.
    """
    y, first = impulse - plastic, gained(G, u, plastic)
    slope, curve = np.sum(y * (u + G @ plastic)), 0.5 * np.sum(y * (G @ y))
    room = np.maximum(0.0, -first)
    share = (np.sqrt(slope * slope + 4.0 * curve * room) - slope) / np.where(curve > 0.0, 2.0 * curve, 1.0)
    return plastic + np.clip(share, 0.0, 1.0) * y
