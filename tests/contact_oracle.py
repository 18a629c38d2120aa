"""A dense checker of contact solutions, from the laws themselves, one problem after the other."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def nearest_in_cone(x: Array, friction: float) -> Array:
    """The nearest point of ‖x_t‖ ≤ friction x_n, by cases."""
    t, z = np.hypot(x[0], x[1]), x[2]
    if t <= friction * z:
        return x
    if friction * t <= -z:
        return np.zeros(3)
    edge = np.array([friction * x[0] / t, friction * x[1] / t, 1.0]) / np.sqrt(1.0 + friction**2)
    nearest: Array = max(edge @ x, 0.0) * edge
    return nearest


def residual(G: Array, g: Array, friction: Array, impulse: Array, convex: bool = False) -> float:
    """The largest |d (λ - P(λ - (σ + Γ)/d))| [m/s] of contacts, and |σ| of the free rows behind them."""
    sigma = G @ impulse + g
    found = [0.0]
    for k, mu in enumerate(friction):
        at = slice(3 * k, 3 * k + 3)
        d = np.trace(G[at, at]) / 3.0
        speed = sigma[at] + [0.0, 0.0, 0.0 if convex else mu * np.hypot(*sigma[at][:2])]
        found += list(np.abs(d * (impulse[at] - nearest_in_cone(impulse[at] - speed / d, mu))))
    return float(np.max([*found, *np.abs(sigma[3 * len(friction) :])]))
