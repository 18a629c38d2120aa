"""Controls over a horizon from knots: piecewise constant, linear or cubic.

All are linear in the knots, so a spline is a matrix (times, knots), and so is a shift in time.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SPLINES: Final = ("hold", "linear", "cubic")


def spacing(spline: str, knots: int, horizon: int) -> float:
    """Number of control periods between knots; the last knot of "hold" lasts as long as the others."""
    if spline == "hold" or knots == 1:
        return horizon / knots
    return (horizon - 1) / (knots - 1)


def spline_matrix(spline: str, knots: int, horizon: int) -> Array:
    """(horizon, knots): matrix from knots to the controls of all periods."""
    return _matrix(spline, knots, np.arange(horizon) / spacing(spline, knots, horizon))


def shift_matrix(spline: str, knots: int, horizon: int, periods: float) -> Array:
    """(knots, knots): matrix to the knots of the curve shifted by some periods; beyond its end it is constant.

    For "hold", a shifted knot is the average of the knots that it overlaps.
    """
    at: Array = np.arange(float(knots)) + periods / spacing(spline, knots, horizon)
    return _matrix("linear" if spline == "hold" else spline, knots, at)


def _matrix(spline: str, knots: int, at: Array) -> Array:
    """(times, knots) for times in units of the knot spacing."""
    unit = np.eye(knots)
    at = np.clip(at, 0.0, knots - 1.0) if spline != "hold" else np.clip(np.floor(at + 1e-9), 0.0, knots - 1.0)
    lower_knot = np.minimum(at.astype(int), max(knots - 2, 0))
    right = np.minimum(lower_knot + 1, knots - 1)
    s = (at - lower_knot)[:, None]
    if spline != "cubic" or knots < 3:
        return (1.0 - s) * unit[lower_knot] + s * unit[right]
    slope = np.gradient(unit, axis=0)
    return (
        (1.0 + 2.0 * s) * (1.0 - s) ** 2 * unit[lower_knot]
        + s * (1.0 - s) ** 2 * slope[lower_knot]
        + s**2 * (3.0 - 2.0 * s) * unit[right]
        + s**2 * (s - 1.0) * slope[right]
    )
