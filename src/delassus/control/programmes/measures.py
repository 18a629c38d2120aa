"""How good an answer is, computed anew from the programme, whoever found it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from delassus.control.programmes.programme import QuadraticProgramme

Array = NDArray[np.float64]


def errors_of(programme: QuadraticProgramme, x: Any, multipliers: Any) -> tuple[Array, Array]:
    """The errors (…) of rows and of the gradient: `primal` and `dual` of a `ProgrammeSolution`.

    A row r with multiplier z is right if r = P(r + z), P the nearest allowed point: it is allowed, z pushes inwards,
    and only at a bound.
    """
    shape = programme.shape
    x, multipliers = np.asarray(x, float), np.asarray(multipliers, float)
    e, m = shape.equalities, shape.rows
    y, z, w = multipliers[..., :e], multipliers[..., e : e + m], multipliers[..., e + m :]

    def times(M: Array, v: Array) -> Array:
        found: Array = np.matmul(M, v[..., None])[..., 0]
        return found

    def back(M: Array, v: Array) -> Array:
        return times(np.swapaxes(M, -1, -2), v)

    gradient = times(programme.H, x) + programme.g + back(programme.A, y) + back(programme.C, z)
    gradient = gradient + back(programme.K, w)
    rows, cone = times(programme.C, x), times(programme.K, x) + programme.k
    parts = [times(programme.A, x) - programme.b, rows - np.clip(rows + z, programme.lower, programme.upper)]
    for span in shape.spans:
        parts.append(cone[..., span] - nearest_in_cone(cone[..., span] + w[..., span]))
    primal = np.max([np.max(np.abs(part), -1, initial=0.0) for part in parts], axis=0)
    return primal, np.max(np.abs(gradient), -1)


def nearest_in_cone(s: Array) -> Array:
    """The nearest point to s (…, size) with ‖all but the last‖ ≤ the last."""
    t, a = np.linalg.norm(s[..., :-1], axis=-1), s[..., -1]
    along = 0.5 * (t + a)
    direction = s[..., :-1] / np.where(t > 0.0, t, 1.0)[..., None]
    edge = np.concatenate([along[..., None] * direction, along[..., None]], -1)
    inside, apex = (t <= a)[..., None], (t <= -a)[..., None]
    return np.where(inside, s, np.where(apex, 0.0, edge))
