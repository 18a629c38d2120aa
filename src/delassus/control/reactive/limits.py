"""Limits as rows in x = (a, f): actuator forces, and accelerations that keep joints within their ranges.

A joint at q with velocity v and acceleration a during a time T stays within its limits if

    lower ≤ q + T v + ½ T² a ≤ upper,    -v_max ≤ v + T a ≤ v_max,

If both are inconsistent, the velocity limit is used.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.control.reactive.situation import Situation
from delassus.control.reactive.supported import SupportedRobot


class Rows(NamedTuple):
    """Rows (k, n), lower and upper bounds (k,)."""

    C: Any
    lower: Any
    upper: Any


def rows_of(s: Situation) -> Rows:
    """All rows of C and their bounds."""
    control = s.control
    parts = [_supports(control)]
    if control.limited_torques:
        limited = list(control.limited_torques)
        U, u0 = s.torque
        lower, upper = numpy.array(control.torque_limit)[:, limited]
        parts.append(Rows(U[limited], lower - u0[limited], upper - u0[limited]))
    if control.limited_joints:
        parts.append(_ranges(s))
    return Rows(*(np.concatenate(x) for x in zip(*parts, strict=True)))


def _supports(control: SupportedRobot) -> Rows:
    rows, lower, upper = [], [], []
    for support in control.supports:
        at = control.force_slices[support.frame]
        for _, coefficients, low, high in support.bounds(control.cone):
            row = [0.0] * control.n
            row[control.nv + at.start : control.nv + at.stop] = coefficients
            rows.append(row)
            lower.append(low)
            upper.append(high)
    return Rows(np.array(numpy.array(rows).reshape(-1, control.n)), np.array(lower), np.array(upper))


def _ranges(s: Situation) -> Rows:
    control, T = s.control, s.control.horizon
    rows, lower, upper = [], [], []
    for _, i, j in control.limited_joints:
        row = [0.0] * control.n
        row[j] = 1.0
        rows.append(row)
        model = control.plain
        predicted, most = s.q[i] + T * s.v[j], model.velocity_limit[j]
        low, high = 2.0 * (model.lower[i] - predicted) / T**2, 2.0 * (model.upper[i] - predicted) / T**2
        # A joint at or beyond its limit returns no faster than its velocity limit.
        slowest, fastest = (-most - s.v[j]) / T, (most - s.v[j]) / T
        lower.append(np.clip(low, slowest, fastest))
        upper.append(np.clip(high, slowest, fastest))
    return Rows(np.array(rows), np.stack(lower), np.stack(upper))


def cones_of(control: SupportedRobot) -> Any:
    """K (cone rows, n) of the friction cones."""
    rows = []
    for support in control.supports if control.cone == "second order" else ():
        at = control.force_slices[support.frame]
        for coefficients in support.cone():
            row = [0.0] * control.n
            row[control.nv + at.start : control.nv + at.stop] = coefficients
            rows.append(row)
    return np.array(numpy.array(rows).reshape(-1, control.n))
