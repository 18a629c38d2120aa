"""Contacts in Newton's method: the projection of Alart and Curnier, and its slopes eliminated for each contact.

A contact obeys λ = P(z), z = λ - R⁻¹ σ, with the velocity σ = J v + b and any R > 0 (k + 1,), a number for each row
[1/kg]: the normal part of z onto the half-line, then the k tangents onto the ball of radius μ λ_n, nearest in the
metric R. With D = P'(z) and y = P(z) - λ, linearized and with a proximal ε,

    B dλ = y - D R⁻¹ J dv,   B = I - (1 - ε) D,   so that   dλ = B⁻¹ y - C J dv,   C = B⁻¹ D R⁻¹.

Three rows share one R: in the directions of z_t, across it, and the normal, B is triangular, and its inverse is written
down. With torsional and rolling friction the responses of rows differ by 10⁴, and one number for all of them makes
iterations many: there R is about the diagonal of the Delassus matrix, and the nearest point of the ball is

    z_t' = (R + x)⁻¹ R z_t,   x ≥ 0 with ‖z_t'‖ = μ λ_n,

x by three steps of Halley's method from a lower bound.

References: P. Alart, A. Curnier, A mixed formulation for frictional contact problems (1991); J. Moré, The Levenberg–
Marquardt algorithm (1978), for the equation of x.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.contact.systems.smooth import coulomb, length, tiny
from delassus.linalg.lu import solve_without_pivots

_HALLEY: Final = 3
"""Steps of Halley's method: with two, some x are off by a percent."""


def project(z: Any, R: Any, friction: Any) -> Any:
    """P(z) (k + 1,) of one contact, k tangents first, the normal last."""
    if len(z) > 3:
        return _project_in_metric(z, R, friction).point
    turned = coulomb(length(z[:-1]), z[-1], friction, 0.0)
    return np.concatenate([turned.share * z[:-1], np.stack([np.array(turned.h)])])


class ContactStep(NamedTuple):
    """B⁻¹ y (k + 1,) and C (k + 1, k + 1) of one contact."""

    alone: Any
    C: Any


def contact_step(z: Any, y: Any, R: Any, friction: Any, epsilon: Any) -> ContactStep:
    """A contact's part of an iteration at z (k + 1,), with its residual y (k + 1,)."""
    k, kept = len(z) - 1, 1.0 - epsilon
    if k > 2:
        D = _slopes_in_metric(_project_in_metric(z, R, friction), z, R, friction)
        sides = np.concatenate([y[:, None], D / R[None, :]], 1)
        solution = solve_without_pivots(np.eye(k + 1) - kept * D, sides)
        return ContactStep(solution[:, 0], solution[:, 1:])
    t, r = length(z[:-1]), 1.0 / R[-1]
    turned = coulomb(t, z[-1], friction, 0.0)
    d = z[:-1] * (1.0 / np.where(t > 0.0, t, 1.0))
    along, across = 1.0 / (1.0 - kept * turned.f_t), 1.0 / (1.0 - kept * turned.share)
    normal = 1.0 / (1.0 - kept * turned.h_z)
    leads = along * turned.f_z * normal  # of the normal on the tangent along d
    y_d = d @ y[:-1]
    alone_t = across * y[:-1] + ((along - across) * y_d + kept * leads * y[-1]) * d
    alone = np.concatenate([alone_t, np.stack([normal * y[-1]])])
    C = np.zeros((k + 1, k + 1))
    c_d, c_t = along * turned.f_t, across * turned.share
    C[:k, :k] = r * (c_t * np.eye(k) + (c_d - c_t) * (d[:, None] * d[None, :]))
    C[:k, k] = (r * leads) * d
    C[k, k] = r * (normal * turned.h_z)
    return ContactStep(alone, C)


class _MetricPoint(NamedTuple):
    """A projection in the metric R: the point (k + 1,), (R + x)⁻¹ (k,), and whether tangents are inside the ball."""

    point: Any
    A: Any
    inside: Any


def _project_in_metric(z: Any, R: Any, friction: Any) -> _MetricPoint:
    """P(z) (k + 1,) of a contact with torsional friction, its rows in units in which its cone is round."""
    k = len(z) - 1
    n = np.maximum(z[k], 0.0)
    radius = friction * n
    w, own = R[:k] * z[:k], R[:k]
    inside = length(z[:k]) <= radius
    size, least = length(w), np.where(radius > 0.0, radius, 1.0)
    groups = (slice(0, 2), slice(2, 3), slice(3, 5))[: 2 if k == 3 else 3]
    bounds = [length(w[group]) / least - own[group.start] for group in groups]
    lower = np.maximum(np.maximum(np.max(np.stack(bounds)), size / least - np.max(own)), 0.0)
    upper = np.maximum(size / least - np.min(own), lower)
    x = lower
    for _ in range(_HALLEY):
        A = 1.0 / (own + x)
        there = A * w
        q = length(there) + tiny()
        a, b = np.sum(there * there * A), np.sum(there * there * A * A)
        F, F1, F2 = 1.0 / q - 1.0 / least, a / (q * q * q), 3.0 * (a * a / (q * q) - b) / (q * q * q)
        x = np.clip(x - 2.0 * F * F1 / (2.0 * F1 * F1 - F * F2 + tiny()), lower, upper)
    A = 1.0 / (own + x)
    there = A * w
    edge = there * (radius / (length(there) + tiny()))
    return _MetricPoint(np.concatenate([np.where(inside, z[:k], edge), np.stack([n])]), A, inside)


def _slopes_in_metric(projected: _MetricPoint, z: Any, R: Any, friction: Any) -> Any:
    """P'(z) (k + 1, k + 1)."""
    k, A = len(z) - 1, projected.A
    there = projected.point[:k]
    turned = A * there
    inverse = 1.0 / (np.sum(there * turned) + tiny())
    W = np.diag(A) - inverse * (turned[:, None] * turned[None, :])
    closed = np.where(z[k] > 0.0, 1.0, 0.0)
    D = np.zeros((k + 1, k + 1))
    D[:k, :k] = np.where(projected.inside, np.eye(k), W * R[None, :k]) * closed
    D[:k, k] = np.where(projected.inside, 0.0, turned * (inverse * friction * length(there))) * closed
    D[k, k] = closed
    return D
