"""Contacts by guesses of which are closed and how fast they slide, each guess a sparse factor.

    open      λ = 0
    closed    σ_n = 0, by a row that yields a little, D = ε d, and what it yields is taken back: λ_n ← λ_n - σ_n/D
    rubbing   λ_t = -σ_t/D, a damper that takes as much as friction does at the speed of the guess, D = ‖σ_t‖/(μ λ_n)

With D one has (G + D) λ = -g + D λ⁻, symmetric and definite however many contacts hold a body. The next guess is read off
σ and λ. Contacts that stick slide more slowly with each guess, until they are slower than the tolerance. For given
normal impulses each guess takes energy off (it is a parabola above friction's cone that touches it), so that it cannot
run in circles, as guesses of sticking and sliding do.

References: P. Alart and A. Curnier, A mixed formulation for frictional contact problems (1991); the dampers are
Kačanov's method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from delassus.contact.cones.second_order import project

if TYPE_CHECKING:
    from delassus.particles.contact.operator import ContactOperator

Array = NDArray[np.float64]

_SOFT: Final = 1e-5
"""By which share of its response a sticking row yields in the factor."""


def by_guesses(
    operator: ContactOperator, g: Array, friction: float, start: Array, tolerance: float, iterations: int
) -> tuple[Array, float, int]:
    """Impulses (m,), the largest residual as a share of the largest free velocity, and how many guesses were made."""
    d = np.maximum(operator.diagonal().reshape(-1, 3).mean(1), 1e-300)
    free, scale = g.reshape(-1, 3), max(float(np.abs(g).max(initial=0.0)), 1e-300)
    pushed = np.asarray(project(start.reshape(-1, 3), friction))
    sigma = (operator.apply(pushed.reshape(-1)) if np.any(pushed) else 0.0) + g
    best, least, made = pushed, np.inf, 0
    for made in range(iterations + 1):
        sigma = np.reshape(sigma, (-1, 3))
        error = _residual(pushed, sigma, d, friction) / scale
        if error < least:
            best, least = pushed, error
        if error <= tolerance or made == iterations or not np.isfinite(error):
            break
        closed, rubbing = _guessed(pushed, sigma, d, friction, 0.3 * tolerance * scale)
        D = np.stack([rubbing, rubbing, _SOFT * d], 1)
        D[~closed] = np.inf
        asked = -free
        asked[closed, 2] += D[closed, 2] * pushed[closed, 2]
        pushed = operator.solve(asked.reshape(-1), D.reshape(-1)).reshape(-1, 3)
        sigma = operator.apply(pushed.reshape(-1)) + g
    return np.asarray(project(best, friction)).reshape(-1), float(least), made


def _guessed(pushed: Array, sigma: Array, d: Array, friction: float, least: float) -> tuple[NDArray[np.bool_], Array]:
    """Which contacts are closed (c,), and the dampers of their tangents (c,); `least` [m/s] is the slowest sliding."""
    normal = pushed[:, 2] - sigma[:, 2] / d
    closed = normal > 0.0
    slide = np.maximum(np.hypot(sigma[:, 0], sigma[:, 1]), least)
    most = friction * np.where(closed, normal, 1.0)
    return closed, slide / np.maximum(most, 1e-12 * slide / d)


def _residual(pushed: Array, sigma: Array, d: Array, friction: float) -> float:
    """The largest of d (λ - P(λ - (σ + Γ)/d)) [m/s]."""
    lifted = np.array(sigma)
    lifted[:, 2] += friction * np.hypot(sigma[:, 0], sigma[:, 1])
    left = d[:, None] * (pushed - np.asarray(project(pushed - lifted / d[:, None], friction)))
    return float(np.abs(left).max(initial=0.0))
