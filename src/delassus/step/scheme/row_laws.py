"""The equation of a row of the compliant scheme, J v⁺ + R λ + b = 0: its compliance R and its value b.

λ is an impulse. Let α and β be the blends of forces and positions, q⁺ = q ⊕ h ((1-β) v + β v⁺). A row has the error g
and the rate ġ = J v - w, where w is the velocity of its reference. Types of rows are

    elastic       a spring of compliance C with a damper B: R = C/(h l), b = (g + (α h (1-β) + (1-α) d) ġ)/l - w,
                  l = α (h β + d), d = B C. Without a damper R = C/(h²αβ), b = g/(hαβ) + (1-β)/β ġ.
                  C may be a symmetric matrix, which couples rows. Then d = C B and l = α (h β + d) are matrices, too,
                  and R = l⁻¹ C/h.
    kinematic     rigid by declaration: R = 0, b = g/(hβ) + (1-β)/β ġ - w, independent of α. In the limit C → 0, an
                  elastic row has g⁺ = -((1-α)/α) g, which alternates for α = ½ and diverges for α < ½.
    unilateral    J v⁺ + R λ + b ≥ 0 ⊥ λ ≥ 0 with b of a kinematic row, but at least 0. A gap may close in the step. A
                  penetration does not cause a separating velocity; position corrections remove it (see
                  `stabilization`).

A stabilized row is solved in two phases. The correction phase computes a motion u with W u = Jᵀ μ that removes the
error, and adds it to positions only. In the dynamics phase the velocity of the row is that of its reference. The b are

                    correction        dynamics
    elastic         0                 b
    kinematic       g/h               -w
    unilateral      gap/h             gap/(hβ) + (1-β)/β ġ, at least 0
    impact          gap/h             e ġ at the impact

Reference: M. Tournier, Compliant reference (2014), sections 4, 5, 8 and 12.2, with the signs of its equations 28, 33,
42 to 45 and 57 corrected; the damper is that of the older documentation of the same scheme.
"""

from __future__ import annotations

from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.step.scheme.blend import Blend

EXPLICIT: Final = 1e-12
"""Smallest α (β + d/h). Rows below it are explicit; their compliance is increased so that the impulse is -h (g/C + B
ġ)."""


def elastic(blend: Blend, g: Any, rate: Any, reference: Any, compliance: Any, damping: Any = None) -> tuple[Any, Any]:
    """R and b of elastic rows with errors g, rates J v - w, references w, C [m/N] and B [N·s/m]; C = ∞ for a damper
    without a spring."""
    h, alpha, beta = blend
    if damping is None:
        l = np.maximum(alpha * h * beta, EXPLICIT * h)
        return compliance / (h * l), (g + alpha * h * (1.0 - beta) * rate) / l - reference
    has_no_spring = np.isinf(compliance)
    C = np.where(has_no_spring, 1.0, compliance)
    d = damping * C
    l = np.maximum(alpha * (np.where(has_no_spring, 0.0, h * beta) + d), EXPLICIT * h)
    spring_term = np.where(has_no_spring, 0.0, g + alpha * h * (1.0 - beta) * rate)
    return C / (h * l), (spring_term + (1.0 - alpha) * d * rate) / l - reference


def elastic_matrix(blend: Blend, g: Any, rate: Any, reference: Any, C: Any, damping: Any = None) -> tuple[Any, Any]:
    """R (k, k) and b (k,) of the rows of one constraint with a compliance matrix C (k, k) [m/N], and B (k,) [N·s/m]."""
    h, alpha, beta = blend
    if damping is None:
        l = np.maximum(alpha * h * beta, EXPLICIT * h)
        return C / (h * l), (g + alpha * h * (1.0 - beta) * rate) / l - reference
    d, identity = C * damping[None, :], numpy.eye(len(g))
    l = alpha * d + np.maximum(alpha * h * beta, EXPLICIT * h) * identity
    R = np.linalg.solve(l, C / h)
    b = np.linalg.solve(l, g + alpha * h * (1.0 - beta) * rate + (1.0 - alpha) * (d @ rate))
    return 0.5 * (R + R.T), b - reference


def kinematic(blend: Blend, g: Any, rate: Any, reference: Any) -> Any:
    """b of kinematic rows."""
    h, _, beta = blend
    return g / (h * beta) + (1.0 - beta) / beta * rate - reference


def unilateral(blend: Blend, gap: Any, rate: Any) -> Any:
    """b of a contact or limit without impact."""
    return np.maximum(kinematic(blend, gap, rate, 0.0), 0.0)
