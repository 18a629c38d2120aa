"""Newton's method on contacts: an active-set iteration with one sparse factorization per iteration.

    open       λ = 0
    sticking   σ = 0, by rows with a small compliance, N = 1/(ε d), which is compensated: λ ← λ - N σ
    sliding    σ_n = 0 likewise; along τ = λ_t - σ_t/d the impulse is that of friction, s = μ λ_n, and across it turns
               with τ: λ_t = s τ/‖τ‖ - κ/((1 - κ) d) (1 - τ τᵀ/‖τ‖²) σ_t, κ = s/‖τ‖

All are λ = λ₀ - N σ with N symmetric and positive semidefinite: A + J_cᵀ N J_c is positive definite for any number of
contacts on a body. The normal impulses in s are those of the previous iterate. Few of thousands of contacts change mode
in a step.

Reference: P. Alart and A. Curnier, A mixed formulation for frictional contact problems (1991); here with s of the
previous iterate, which makes the matrix symmetric.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from delassus.contact.cones.second_order import contact_residual, project

if TYPE_CHECKING:
    from delassus.particles.contact.operator import ContactOperator

Array = NDArray[np.float64]

_SOFT: Final = 1e-5
"""Compliance of a sticking row in the factor, relative to its response."""


_PATIENCE: Final = 8
"""Number of iterates without improvement after which the iteration counts as cycling."""


def by_guesses(
    operator: ContactOperator, g: Array, friction: float, start: Array, tolerance: float, iterations: int
) -> tuple[Array, float, int]:
    """Impulses (m,), the largest residual relative to the largest free velocity, and the number of iterations."""
    d = np.maximum(operator.diagonal().reshape(-1, 3).mean(1), 1e-300)
    scale = max(float(np.abs(g).max(initial=0.0)), 1e-300)
    impulse = np.asarray(project(start.reshape(-1, 3), friction))
    sigma = (operator.apply(impulse.reshape(-1)) if np.any(impulse) else 0.0) + g
    best, least, iteration, since = impulse, np.inf, 0, 0
    for iteration in range(iterations + 1):
        sigma = np.reshape(sigma, (-1, 3))
        residual = np.abs(contact_residual(impulse, sigma, friction, d))
        error = float(residual.max(initial=0.0)) / scale
        if error < least:
            best, least, since = impulse, error, iteration
        if error <= tolerance or iteration == iterations or iteration - since > _PATIENCE or not np.isfinite(error):
            break
        N, offset = _linearize_contacts(impulse, sigma, d, friction)
        new, sigma = operator.answer(N, offset.reshape(-1), g)
        impulse = new.reshape(-1, 3)
    return np.asarray(project(best, friction)).reshape(-1), float(least), iteration


def _linearize_contacts(impulse: Array, sigma: Array, d: Array, friction: float) -> tuple[Array, Array]:
    """N (c, 3, 3) and offsets (c, 3) of the linearization λ = offset - N σ at an impulse and a velocity."""
    towards = impulse - sigma / d[:, None]
    normal, slip = towards[:, 2], np.hypot(towards[:, 0], towards[:, 1])
    is_closed = normal > 0.0
    bound = friction * np.where(is_closed, np.maximum(impulse[:, 2], 0.0), 0.0)
    bound = np.where(is_closed & (impulse[:, 2] <= 0.0), friction * normal, bound)
    sticks = is_closed & (slip <= bound)
    slides = is_closed & ~sticks
    N, offset = np.zeros((len(d), 3, 3)), np.zeros((len(d), 3))
    stiff = 1.0 / (_SOFT * d)
    N[is_closed, 2, 2], offset[is_closed, 2] = stiff[is_closed], impulse[is_closed, 2]
    for k in (0, 1):
        N[sticks, k, k], offset[sticks, k] = stiff[sticks], impulse[sticks, k]
    t = towards[slides, :2] / slip[slides, None]
    share = np.minimum(bound[slides] / slip[slides], 1.0 - 1e-6)
    tangent_projector = np.eye(2) - t[:, :, None] * t[:, None, :]
    N[slides, :2, :2] = (share / ((1.0 - share) * d[slides]))[:, None, None] * tangent_projector
    offset[slides, :2] = bound[slides, None] * t
    return N, offset
