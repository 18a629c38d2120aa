"""Projection by one singular value decomposition, J = U Σ Vᵀ.

With the pseudo-inverse J⁺ and the columns N of V that span the null space, J and e those at a configuration q₀,

    q₀ ⊕ (N Nᵀ d - J⁺ e),      N Nᵀ v + J⁺ w,      d = q ⊖ q₀,

w are the velocities of the references. This is the smallest change of q and v in the Euclidean metric that satisfies
the constraints linearized at q₀, which is q itself (d = 0) by default. The metric adds radians and meters, so the
result depends on units. Errors of second order in e and d remain; for constraints with rows left out, whose velocity is
not the rate of e, even larger ones (see `Constraint.holonomic`). O(m n min(m, n)) operations for each Jacobi sweep (see
`gauss`). It needs no inertias and works at any rank. Choose the method "mass" for simulations.

Reference: S. Savin, Solving mechanical equations with constraints (2020), eq. 14 and 20, simplified by N Nᵀ J⁺ = 0.
"""

from __future__ import annotations

from typing import Any

import numpy

import delassus.numpy as np
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constrained.rows.references import constraint_error, velocities_asked
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.kinematics.manifold import difference, integrate
from delassus.linalg.least_squares import RANK, nearest_solution


def project_by_svd(
    mechanism: Mechanism, q: Any, v: Any, locked: tuple[int, ...] = (), time: Any = None, linearization: Any = None
) -> tuple[Any, Any]:
    """Configuration (nq,) and velocity (nv,) after one step; `locked` are indices of velocities that do not change.

    The step is linearized at `linearization` (nq,), or at q.
    """
    q0 = q if linearization is None else linearization
    d = np.zeros(mechanism.nv) if linearization is None else difference(mechanism.model, q0, q)
    e, w = constraint_error(mechanism, q0, time=time), velocities_asked(mechanism, q0, time)
    J = constraint_jacobian(mechanism, q0, time=time)
    free = numpy.array([float(k not in locked) for k in range(mechanism.nv)])
    result, *_ = nearest_solution(J * free, v * free, J @ (v * (1.0 - free)) - w, RANK)
    holding = _position_rows(mechanism)
    locked_part = d * (1.0 - free)
    correction, *_ = nearest_solution(J * free * holding[:, None], d * free, (e + J @ locked_part) * holding, RANK)
    return integrate(mechanism.model, q0, correction + locked_part), np.where(free > 0.0, result, v)


def _position_rows(mechanism: Mechanism) -> Any:
    """1 for rows on positions (m,), 0 for rows on velocities only."""
    holding = numpy.ones(mechanism.m)
    for constraint, at in zip(mechanism.constraints, mechanism.row_ranges(), strict=True):
        holding[at] = float(constraint.holds_positions)
    return holding
