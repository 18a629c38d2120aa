"""Riccati equations by structure-preserving doubling, in plain NumPy.

    discrete:    X = Aᵀ X A - Aᵀ X B (R + Bᵀ X B)⁻¹ Bᵀ X A + Q,
    continuous:  Aᵀ X + X A - X B R⁻¹ Bᵀ X + Q = 0.

A step of doubling turns a time step into one of twice the length; G and H accumulate control and cost:

    W = (1 + G H)⁻¹,   G ← G + A W G Aᵀ,   H ← H + Aᵀ H W A,   A ← A W A.

H converges to X quadratically: ten to fifteen steps of O(n³). A continuous equation becomes a discrete one by Cayley's
transformation. The solution is the stabilizing one, if it exists; check the residual.
Reference: E. Chu, H. Fan, W. Lin, A structure-preserving doubling algorithm for continuous-time algebraic Riccati
equations (2005).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_STEPS: Final = 60
_SETTLED: Final = 1e-15


def discrete_riccati(A: Floats, B: Floats, Q: Floats, R: Floats) -> Floats:
    """X (n, n); not finite if no feedback is stabilizing."""
    return _doubling_step(A, B @ np.linalg.solve(R, B.T), Q)


def continuous_riccati(A: Floats, B: Floats, Q: Floats, R: Floats) -> Floats:
    """X (n, n); not finite if no feedback is stabilizing."""
    G, n = np.asarray(B @ np.linalg.solve(R, B.T), float), len(A)
    # Any positive value is valid; this one is close to the fastest mode, with and without feedback.
    r = float(np.linalg.norm(A, 2) + np.sqrt(np.linalg.norm(G, 2) * np.linalg.norm(Q, 2))) or 1.0
    shifted = A - r * np.eye(n)
    inverse: Floats = np.asarray(np.linalg.inv(shifted), float)
    W: Floats = np.asarray(np.linalg.inv(shifted + G @ inverse.T @ Q), float)
    V: Floats = np.asarray(np.linalg.inv(shifted.T + Q @ inverse @ G), float)
    return _doubling_step(np.eye(n) + 2.0 * r * W, 2.0 * r * inverse @ G @ V, 2.0 * r * V @ Q @ inverse)


def _doubling_step(A: Floats, G: Floats, H: Floats) -> Floats:
    one = np.eye(len(A))
    with np.errstate(all="ignore"):
        for _ in range(_STEPS):
            try:
                W = np.linalg.inv(one + G @ H)
            except np.linalg.LinAlgError:
                return np.full_like(A, np.nan)
            increment = A.T @ H @ W @ A
            G, H, A = _even(G + A @ W @ G @ A.T), _even(H + increment), A @ W @ A
            if not np.all(np.isfinite(H)):
                return np.full_like(A, np.nan)
            if np.max(np.abs(increment)) <= _SETTLED * np.max(np.abs(H)):
                break
    return H


def _even(X: Floats) -> Floats:
    return 0.5 * (X + X.T)
