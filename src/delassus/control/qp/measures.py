"""Residuals of a solution, recomputed from the program, independent of the solver."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.control.qp.data import QPData

Array = NDArray[np.float64]

_ALONG: Final = 1e-6
"""Largest relative deviation of a direction from those in which rows and cost are unbounded."""


def errors_of(qp: QPData, x: Any, multipliers: Any) -> tuple[Array, Array]:
    """The errors (…) of rows and of the gradient: `primal` and `dual` of a `QPSolution`.

    A row r with multiplier z is satisfied if r = P(r + z), P the projection onto the feasible set: r is feasible, z
    pushes inward, and only at a bound.
    """
    shape = qp.shape
    x, multipliers = np.asarray(x, float), np.asarray(multipliers, float)
    e, m = shape.equalities, shape.rows
    y, z, w = multipliers[..., :e], multipliers[..., e : e + m], multipliers[..., e + m :]

    def times(M: Array, v: Array) -> Array:
        product: Array = np.matmul(M, v[..., None])[..., 0]
        return product

    def back(M: Array, v: Array) -> Array:
        return times(np.swapaxes(M, -1, -2), v)

    gradient = times(qp.H, x) + qp.g + back(qp.A, y) + back(qp.C, z)
    gradient = gradient + back(qp.K, w)
    rows, cone = times(qp.C, x), times(qp.K, x) + qp.k
    parts = [times(qp.A, x) - qp.b, rows - np.clip(rows + z, qp.lower, qp.upper)]
    for span in shape.spans:
        parts.append(cone[..., span] - nearest_in_cone(cone[..., span] + w[..., span]))
    primal = np.max([np.max(np.abs(part), -1, initial=0.0) for part in parts], axis=0)
    return primal, np.max(np.abs(gradient), -1)


def falls_without_end(qp: QPData, x: Array) -> bool:
    """Whether the cost of one program is unbounded below along x (n,): a direction, or a distant point.

    The rows do not bound the direction, A x = 0 and so on to a millionth, the cost decreases along it, and its
    curvature would stop the decrease only a million times farther than x.
    """
    slope, curvature = float(qp.g @ x), float(x @ qp.H @ x)
    if not slope < 0.0 or curvature > _ALONG * abs(slope):
        return False
    row_direction = qp.C @ x
    parts = [(qp.A @ x, qp.A)]
    parts += [(np.where(np.isfinite(qp.upper), np.maximum(row_direction, 0.0), 0.0), qp.C)]
    parts += [(np.where(np.isfinite(qp.lower), np.maximum(-row_direction, 0.0), 0.0), qp.C)]
    cone = qp.K @ x
    for span in qp.shape.spans:
        size = np.abs(qp.K[span]).max(initial=0.0)
        parts.append((cone[span] - nearest_in_cone(cone[span]), np.full((span.stop - span.start, 1), size)))
    length = np.abs(x).max()
    return all(np.all(np.abs(change) <= _ALONG * length * np.abs(M).max(-1, initial=0.0)) for change, M in parts)


def nearest_in_cone(s: Array) -> Array:
    """Project s (…, size) onto the cone ‖all but the last‖ ≤ the last."""
    t, a = np.linalg.norm(s[..., :-1], axis=-1), s[..., -1]
    axis_part = 0.5 * (t + a)
    direction = s[..., :-1] / np.where(t > 0.0, t, 1.0)[..., None]
    edge = np.concatenate([axis_part[..., None] * direction, axis_part[..., None]], -1)
    inside, apex = (t <= a)[..., None], (t <= -a)[..., None]
    return np.where(inside, s, np.where(apex, 0.0, edge))
