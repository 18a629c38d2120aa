"""Projection by one singular value decomposition, J = U Σ Vᵀ.

With the pseudo-inverse J⁺ and the columns N of V that J does not see, J and e those of a configuration q₀,

    q₀ ⊕ (N Nᵀ d - J⁺ e),      N Nᵀ v + J⁺ w,      d = q ⊖ q₀,

w the velocities of the references: the least change of q and v in the plain (Euclidean) metric that meets the
constraints as they are linearized in q₀, which is q itself (d = 0) unless another one is given. Radians and meters are
added up in it, so the result depends on units. Both equations are met up to products of e and d, and rows whose
neighbors are left out, whose velocity is not the rate of e, not even that far (see `Constraint.holonomic`).
O(m n min(m, n)) operations a sweep of the singular values (see `gauss`). It needs no inertias and any rank will do.
Choose the method "mass" for simulations.

Reference: S. Savin, Solving mechanical equations with constraints (2020), eq. 14 and 20, with N Nᵀ J⁺ = 0 made use of.
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
    """Configuration (nq,) and velocity (nv,) after one step; `locked` are numbers of velocities that stay.

    The step is linearized in `linearization` (nq,), or in q.
    """
    q0 = q if linearization is None else linearization
    d = np.zeros(mechanism.nv) if linearization is None else difference(mechanism.model, q0, q)
    e, w = constraint_error(mechanism, q0, time=time), velocities_asked(mechanism, q0, time)
    J = constraint_jacobian(mechanism, q0, time=time)
    free = numpy.array([float(k not in locked) for k in range(mechanism.nv)])
    result, *_ = nearest_solution(J * free, v * free, J @ (v * (1.0 - free)) - w, RANK)
    holding = _position_rows(mechanism)
    own = d * (1.0 - free)
    back, *_ = nearest_solution(J * free * holding[:, None], d * free, (e + J @ own) * holding, RANK)
    return integrate(mechanism.model, q0, back + own), np.where(free > 0.0, result, v)


def _position_rows(mechanism: Mechanism) -> Any:
    """1 for rows that hold positions (m,), 0 for those on velocities alone."""
    holding = numpy.ones(mechanism.m)
    for constraint, at in zip(mechanism.constraints, mechanism.row_ranges(), strict=True):
        holding[at] = float(constraint.holds_positions)
    return holding
