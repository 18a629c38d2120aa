"""Impulses that explain a motion, for contacts with a compliance, in closed form.

A motion has the row velocities c = J v⁺ + b. Rows with the compliance R have σ = c + R λ, so the λ that satisfies the
contact law follows for each contact separately, without the robot's inertia:

    constraints    λ = -c/R          limits    λ = max(-c/R, 0)          joint friction    λ = -c/R, clipped
    contacts, ncp  λ_n = max(-c_n/R_n, 0),    λ_t = -c_t/R_t, projected onto the disk ‖λ_t‖ ≤ friction · λ_n
    contacts, ccp  the point of the cone nearest to -c/R, in the metric of R

If λ_t is shortened, σ_t is opposite to it, since both are along c_t. Rows of moments have the compliance
R_t (friction/coefficient)², so that the cross-section of the cone is a ball of the metric.
"""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.contact.cones.kinds import Free, Interval, NonNegative
from delassus.contact.systems.smooth import second_order, tiny
from delassus.step.points.coefficients import coefficients_of
from delassus.step.scene import Scene


def explain_impulses(
    scene: Scene, convex: bool, c: Any, R: Any, coefficients: tuple[Any, Any, Any], bounds: tuple[Any, Any]
) -> Any:
    """λ (m,) from row velocities c (m,) and compliances R (m,); `bounds` are those of joint friction (intervals,)."""
    wanted, result = -c / R, np.zeros(scene.m)
    for row in scene.layout.rows(Free):
        result[row] = wanted[row]
    for row in scene.layout.rows(NonNegative):
        result[row] = np.maximum(wanted[row], 0.0)
    for k, row in enumerate(scene.layout.rows(Interval)):
        result[row] = np.clip(wanted[row], bounds[0][k], bounds[1][k])
    for own, others in coefficients_of(scene, *coefficients):
        rows = [*own[:2], *own[3:]]
        # Rows are scaled to a cone with coefficient one; a row whose coefficient is zero has no impulse.
        size = [np.where(x > 0.0, x, 1.0) for x in others]
        inner = [np.where(x > 0.0, wanted[row] / s, 0.0) for row, x, s in zip(rows, others, size, strict=True)]
        t, n = np.sqrt(sum(x * x for x in inner)), wanted[own[2]]
        if convex:
            ratio = np.sqrt(R[rows[0]] / R[own[2]]) * size[0]
            onto = second_order(ratio * t, n, ratio, 0.0)
            share, normal = onto.share, onto.h
        else:
            normal = np.maximum(n, 0.0)
            share = np.where(t > normal, normal / (t + tiny()), 1.0)
        result[own[2]] = normal
        for row, x, s in zip(rows, inner, size, strict=True):
            result[row] = share * s * x
    return result
