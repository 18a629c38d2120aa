"""Impedances and gains of relaxed rows from `solimp` and `solref`, with MuJoCo's conventions."""

from __future__ import annotations

from typing import Any, Final

import delassus.numpy as np

LEAST_IMPEDANCE: Final = 1e-4
"""Impedances are clipped to at least this distance from 0 and 1."""

LEAST: Final = 1e-15
"""Lower bound of R and other divisors."""


def impedances(impedance: Any, size: Any) -> Any:
    """The impedance d(r) (m,): a power curve from d₀ to d_width, constant beyond the width."""
    d0, dw, width, midpoint, power = (impedance[:, k] for k in range(5))
    d0, dw = (np.clip(d, LEAST_IMPEDANCE, 1.0 - LEAST_IMPEDANCE) for d in (d0, dw))
    midpoint = np.clip(midpoint, LEAST_IMPEDANCE, 1.0 - LEAST_IMPEDANCE)
    power = np.maximum(power, 1.0)
    x = np.minimum(np.abs(size) / np.maximum(width, LEAST), 1.0)
    low = np.exp(power * np.log(np.maximum(x, 1e-300)) - (power - 1.0) * np.log(midpoint))
    rest = np.maximum(1.0 - x, 1e-300)
    high = 1.0 - np.exp(power * np.log(rest) - (power - 1.0) * np.log(1.0 - midpoint))
    y = np.where(x >= 1.0, 1.0, np.where(x <= midpoint, np.where(x > 0.0, low, 0.0), high))
    return np.where(width > LEAST, d0 + y * (dw - d0), 0.5 * (d0 + dw))


def gains(solref: Any, dw: Any, h: Any) -> tuple[Any, Any]:
    """Stiffness k and damping b of the reference acceleration a* = -b v - k d(r) r, from `solref`."""
    dw = np.clip(dw, LEAST_IMPEDANCE, 1.0 - LEAST_IMPEDANCE)
    timed = solref[0] > 0.0
    t, z = np.where(timed, np.maximum(solref[0], 2.0 * h), 1.0), np.where(timed, solref[1], 1.0)
    k = np.where(timed, 1.0 / np.maximum(dw * dw * t * t * z * z, LEAST), -solref[0] / (dw * dw))
    b = np.where(timed, 2.0 / np.maximum(dw * t, LEAST), -solref[1] / dw)
    return k, b
