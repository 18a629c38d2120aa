"""The equation of a row of the compliant scheme, J v⁺ + R λ + b = 0: its compliance R and its value b.

λ is an impulse. With the blends α of forces and β of positions, and q⁺ = q ⊕ h ((1-β) v + β v⁺), a row with the error
g and the rate ġ = J v - w, w the velocity of its reference, is

    elastic       a spring of compliance C with a damper B: R = C/(h l), b = (g + (α h (1-β) + (1-α) d) ġ)/l - w,
                  l = α (h β + d), d = B C. Without a damper R = C/(h²αβ), b = g/(hαβ) + (1-β)/β ġ.
                  C may be a symmetric matrix, whose rows yield to each other's forces. Then d = C B and
                  l = α (h β + d) are matrices, too, and R = l⁻¹ C/h.
    kinematic     rigid, by declaration: R = 0, b = g/(hβ) + (1-β)/β ġ - w. No α in it: the limit C → 0 of an elastic
                  row leaves g⁺ = -((1-α)/α) g, which alternates for α = ½ and grows below.
    unilateral    J v⁺ + R λ + b ≥ 0 ⊥ λ ≥ 0, b as of a kinematic row, but never so that the row is thrown back: a gap
                  may close, and not more, and a penetration is not the business of velocities (see `stabilization`).

A stabilized row is met in two phases. In the correction phase a motion u with W u = Jᵀ μ takes its error off, and is
added to the positions alone; in the dynamics phase its velocity is that of its reference:

                    correction        dynamics
    elastic         0                 b
    kinematic       g/h               -w
    unilateral      gap/h             gap/(hβ) + (1-β)/β ġ, at least 0
    striking        gap/h             e ġ at the impact

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
    """R and b of elastic rows: errors g, rates J v - w, w, C [m/N], B [N·s/m]; with C infinite, dampers alone."""
    h, alpha, beta = blend
    if damping is None:
        l = np.maximum(alpha * h * beta, EXPLICIT * h)
        return compliance / (h * l), (g + alpha * h * (1.0 - beta) * rate) / l - reference
    alone = np.isinf(compliance)
    C = np.where(alone, 1.0, compliance)
    d = damping * C
    l = np.maximum(alpha * (np.where(alone, 0.0, h * beta) + d), EXPLICIT * h)
    pulled = np.where(alone, 0.0, g + alpha * h * (1.0 - beta) * rate)
    return C / (h * l), (pulled + (1.0 - alpha) * d * rate) / l - reference


def elastic_matrix(blend: Blend, g: Any, rate: Any, reference: Any, C: Any, damping: Any = None) -> tuple[Any, Any]:
    """R (k, k) and b (k,) of the rows of one constraint with a compliance matrix C (k, k) [m/N], and B (k,) [N·s/m]."""
    h, alpha, beta = blend
    if damping is None:
        l = np.maximum(alpha * h * beta, EXPLICIT * h)
        return C / (h * l), (g + alpha * h * (1.0 - beta) * rate) / l - reference
    d, one = C * damping[None, :], numpy.eye(len(g))
    l = alpha * d + np.maximum(alpha * h * beta, EXPLICIT * h) * one
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
