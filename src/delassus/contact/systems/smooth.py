"""Projections onto cones, their smooth approximations, and the derivatives of both.

A contact is solved when λ = P(λ - σ), P the projection onto the admissible impulses, in units in which the contact's
own response is about one. P has kinks where a contact opens and where it begins to slide; Newton's method can cycle
between their sides. Replacing max(x, 0) by s(x) = (x + √(x² + 4 e²)) / 2 smooths the kinks with a radius e, and the
error vanishes with e (Chen, Harker, Kanzow, Smale).

All projections here are rotationally symmetric about the normal: they depend only on the length t of the tangential
part and on the normal part z. They return f, the ratio of new to old length, and h, the new normal part, with their
slopes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.trace import computing_in


def tiny() -> float:
    """Lengths below this count as zero: their squares would underflow."""
    return 1e-150 if computing_in().name == "float64" else 1e-18


class RadialProjection(NamedTuple):
    """A radial projection: y_t = share · x_t and y_n = h, with the slopes of f = share · t and of h."""

    share: Any
    f_t: Any
    f_z: Any
    h: Any
    h_t: Any
    h_z: Any


def positive_part(x: Any, e: Any) -> tuple[Any, Any]:
    """s(x) and its slope: max(x, 0) and a unit step for e = 0."""
    if isinstance(e, float) and e == 0.0:
        return np.maximum(x, 0.0), np.where(x > 0.0, 1.0, 0.0)
    root = np.sqrt(x * x + 4.0 * e * e) + tiny()
    # ½ (root - |x|) = 2 e² / (root + |x|), without cancellation; one division for value and slope.
    inverse = 1.0 / (root * (root + np.abs(x)))
    value = np.maximum(x, 0.0) + 2.0 * e * e * root * inverse
    return value, 0.5 + 0.5 * x * (root + np.abs(x)) * inverse


def coulomb(t: Any, z: Any, friction: Any, e: Any) -> RadialProjection:
    """Project the normal part onto its half-line, then the tangents onto the disk of radius friction · normal.

    Its fixed points obey Signorini's and Coulomb's laws (Alart, Curnier): a closed contact has σ_n = 0, and a sliding
    one λ_t against σ_t.
    """
    h, h_z = positive_part(z, e)
    r, r_z = friction * h, friction * h_z
    q, q_x = positive_part(t - r, e)
    inverse = 1.0 / (r + q + tiny())
    share = r * inverse
    f_t = share * (1.0 - t * q_x * inverse)
    f_z = t * r_z * (q + q_x * r) * inverse * inverse
    return RadialProjection(share, f_t, f_z, h, 0.0, h_z)


def second_order(t: Any, z: Any, friction: Any, e: Any) -> RadialProjection:
    """Project onto the cone ‖t‖ ≤ friction · z.

    With d = (friction, 1)/n along the boundary and c across it, x = a d + b c. For b > 0 the point is inside; otherwise
    b is dropped, and for a < 0 the projection is the apex.
    """
    square = friction * friction
    narrow = 1.0 / (1.0 + square)
    a, a_x = positive_part((friction * t + z) * narrow, e)
    b, b_x = positive_part((friction * z - t) * narrow, 0.0 if isinstance(e, float) and e == 0.0 else friction * e)
    f = friction * a - b
    is_axial = t < 1e-7 * np.abs(z) + tiny()
    f_t = (square * a_x + b_x) * narrow
    share = np.where(is_axial, f_t, f / np.where(is_axial, 1.0, t))
    f_z = friction * (a_x - b_x) * narrow
    return RadialProjection(share, f_t, f_z, a + friction * b, f_z, (a_x + square * b_x) * narrow)


def slopes(projection: RadialProjection, direction: Any) -> Any:
    """The Jacobian (k + 1, k + 1) of a radial projection, for tangents of a direction (k,)."""
    k = len(direction)
    direction_product = direction[:, None] * direction[None, :]
    D = np.zeros((k + 1, k + 1))
    D[:k, :k] = projection.f_t * direction_product + projection.share * (np.eye(k) - direction_product)
    D[:k, k] = projection.f_z * direction
    D[k, :k] = projection.h_t * direction
    D[k, k] = projection.h_z
    return D


def length(x: Any) -> Any:
    """‖x‖ (…) of vectors (…, k)."""
    return np.sqrt(np.sum(x * x, -1))
