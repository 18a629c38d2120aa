"""Matrix exponentials and zero-order-hold discretization, in plain NumPy."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_ORDER: Final = 8
"""Coefficients of Padé's approximant, exact to rounding for matrices of norm ½."""


def matrix_exponential(A: Floats) -> Floats:
    """exp(A) (…, n, n), by Padé's approximant of order 8 with scaling and squaring."""
    size = float(np.max(np.sum(np.abs(A), -1), initial=0.0))
    halvings = max(0, math.ceil(math.log2(size)) + 1) if size > 0.0 else 0
    X = A / 2.0**halvings
    one = np.broadcast_to(np.eye(A.shape[-1]), A.shape)
    above, below, power, c = one.copy(), one.copy(), one, 1.0
    for k in range(1, _ORDER + 1):
        c *= (_ORDER - k + 1) / (k * (2 * _ORDER - k + 1))
        power = power @ X
        above, below = above + c * power, below + (-1.0) ** k * c * power
    result = np.linalg.solve(below, above)
    for _ in range(halvings):
        result = result @ result
    return np.asarray(result, float)


def discretize(A: Floats, B: Floats, time_step: float) -> tuple[Floats, Floats]:
    """A and B of x⁺ = A x + B u for ẋ = A x + B u, with u constant during a time step [s]."""
    n, m = B.shape[-2:]
    augmented = np.zeros((*A.shape[:-2], n + m, n + m))
    augmented[..., :n, :n], augmented[..., :n, n:] = A, B
    exponential = matrix_exponential(augmented * time_step)
    return exponential[..., :n, :n], exponential[..., :n, n:]
