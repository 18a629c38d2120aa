"""The projection of Alart and Curnier in a scaled metric, for contacts of four and six rows.

A contact satisfies λ = P(λ - R⁻¹ σ) with any R > 0, one value for each row. P projects the normal part onto the
half-line, then the k tangents z onto the ball of radius r = friction · λ_n in the metric R,

    z' = (R + x)⁻¹ R z,   x ≥ 0 with ‖z'‖ = r,

x by three steps of Halley's method from a lower bound. Rows of torsional and rolling friction respond 10⁻⁴ times as
much to their impulses as the others. With the same R for all rows this takes many iterations; with R close to the
diagonal of the Delassus matrix, as few as contacts of three rows.

References: P. Alart, A. Curnier, A mixed formulation for frictional contact problems (1991); J. Moré, The Levenberg–
Marquardt algorithm (1978), for the equation of x.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.contact.systems.smooth import length, tiny

_HALLEY: Final = 3
"""Steps of Halley's method; with two, errors of x reach a percent."""

_GROUPS: Final = (slice(0, 2), slice(2, 3), slice(3, 5))
"""Tangents that share a value of R: sliding, spinning and rolling."""

_LEAST: Final = 1e-6
"""Smallest value of R, relative to the largest of its contact: a row without friction has no response."""


class BallPoint(NamedTuple):
    """The projection (…, k) onto a ball, (R + x)⁻¹ (…, k), and whether the point was inside (…)."""

    point: Any
    A: Any
    inside: Any


def metric_of(response: Any) -> Any:
    """R (…, k + 1) of contacts from the responses (…, k + 1) of their rows to their own impulses, the normal last."""
    k = response.shape[-1] - 1
    means = [np.mean(response[..., group], -1)[..., None] + 0.0 * response[..., group] for group in groups(k)]
    R = np.concatenate([*means, response[..., k:]], -1)
    largest = np.max(R, -1)[..., None]
    return np.where(largest > 0.0, np.maximum(R, _LEAST * largest), 1.0)


def groups(k: int) -> tuple[slice, ...]:
    """The slices of k tangents that share a value of R."""
    return tuple(group for group in _GROUPS if group.start < k)


def project_onto_ball(z: Any, R: Any, radius: Any) -> BallPoint:
    """Project z (…, k) onto the ball of a radius (…) in the metric R (…, k)."""
    w, inside = R * z, length(z) <= radius
    size, least = length(w), np.where(radius > 0.0, radius, 1.0)
    lower = np.maximum(size / least - np.max(R, -1), 0.0)
    for group in groups(z.shape[-1]):
        lower = np.maximum(lower, length(w[..., group]) / least - R[..., group.start])
    upper = np.maximum(size / least - np.min(R, -1), lower)
    x = lower
    for _ in range(_HALLEY):
        A = 1.0 / (R + x[..., None])
        point = A * w
        q = length(point) + tiny()
        a, b = np.sum(point * point * A, -1), np.sum(point * point * A * A, -1)
        F, F1, F2 = 1.0 / q - 1.0 / least, a / (q * q * q), 3.0 * (a * a / (q * q) - b) / (q * q * q)
        x = np.clip(x - 2.0 * F * F1 / (2.0 * F1 * F1 - F * F2 + tiny()), lower, upper)
    A = 1.0 / (R + x[..., None])
    point = A * w
    edge = point * (radius / (length(point) + tiny()))[..., None]
    return BallPoint(np.where(inside[..., None], z, edge), A, inside)


def project_in_metric(z: Any, R: Any, friction: Any) -> tuple[Any, BallPoint]:
    """P(z) (k + 1,) of one contact, the normal last, and its tangential part."""
    n = np.maximum(z[-1], 0.0)
    tangents = project_onto_ball(z[:-1], R[:-1], friction * n)
    return np.concatenate([tangents.point, np.stack([n])]), tangents


def slopes_in_metric(z: Any, R: Any, friction: Any, tangents: BallPoint) -> Any:
    """P'(z) (k + 1, k + 1) of one contact, from the projection of its tangents."""
    k, (point, A, inside) = len(z) - 1, tangents
    rotated = A * point
    inverse = 1.0 / (np.sum(point * rotated) + tiny())
    W = np.diag(A) - inverse * (rotated[:, None] * rotated[None, :])
    is_closed = np.where(z[k] > 0.0, 1.0, 0.0)
    D = np.zeros((k + 1, k + 1))
    D[:k, :k] = np.where(inside, np.eye(k), W * R[None, :k]) * is_closed
    D[:k, k] = np.where(inside, 0.0, rotated * (inverse * friction * length(point))) * is_closed
    D[k, k] = is_closed
    return D


def proximal_slopes(D: Any, rho: Any, weights: Any) -> Any:
    """D - ρ D R⁻½ (k, k), which an iteration subtracts from I, for the weights R⁻¹ (k,).

    With ρ alone, sticking contacts would have a compliance of ρ R, and redundant ones lose digits. With ρ R⁻¹ it would
    be ρ, which is large for rows that respond by 10⁻⁵.
    """
    return D - rho * D * np.sqrt(weights)[None, :]
