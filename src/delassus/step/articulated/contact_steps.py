"""Contacts in Newton's method: the projection of Alart and Curnier, with its derivatives eliminated per contact.

A contact satisfies λ = P(z), z = λ - R⁻¹ σ, with the velocity σ = J v + b and any R > 0 (k + 1,) [1/kg], one value per
row. P projects the normal component of z onto the half-line, then the k tangents onto the ball of radius μ λ_n, in the
metric R. With D = P'(z) and y = P(z) - λ, linearized and with a proximal ε,

    B dλ = y - D R⁻¹ J dv,   B = I - (1 - ε) D,   so that   dλ = B⁻¹ y - C J dv,   C = B⁻¹ D R⁻¹.

The three rows of a contact share one R. In the directions of z_t, perpendicular to it, and the normal, B is triangular,
and its inverse has a closed form. With torsional and rolling friction, the responses of rows differ by 10⁴, and a
common value takes many iterations. R is then near the diagonal of the Delassus matrix, see `contact.systems.metric`.

Reference: P. Alart, A. Curnier, A mixed formulation for frictional contact problems (1991).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.contact.systems.metric import project_in_metric, slopes_in_metric
from delassus.contact.systems.smooth import coulomb, length
from delassus.linalg.lu import solve_without_pivots


def project(z: Any, R: Any, friction: Any) -> Any:
    """P(z) (k + 1,) of one contact, k tangents first, the normal last."""
    if len(z) > 3:
        return project_in_metric(z, R, friction)[0]
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
        D = slopes_in_metric(z, R, friction, project_in_metric(z, R, friction)[1])
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
