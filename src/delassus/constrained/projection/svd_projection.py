"""Taking drift off by one singular value decomposition, J = U Σ Vᵀ, as textbooks do it.

With the pseudo-inverse J⁺ and the columns N of V that J does not see,

    q ⊕ -J⁺ e,      v = N Nᵀ v + J⁺ w,

w the velocities of the references: the least change of q and v in the plain (Euclidean) metric, to first order. Radians
and metres are added up in it, so the result depends on units; J is that of the configuration given, so both equations
are met up to products of e, and rows whose neighbours are left out, whose velocity is not the rate of e, not even that
far (see `Constraint.holonomic`). O(m n min(m, n)) operations a sweep of the singular values (see `gauss`). It needs no
inertias and any rank will do. Choose the method "mass" for simulations.

Reference: S. Savin, lectures on constrained dynamics (drift of explicit constraints), with N Nᵀ J⁺ = 0 made use of.
"""

from __future__ import annotations

from typing import Any

import numpy

import delassus.numpy as np
from delassus.constrained.elimination.gauss import RANK, nearest
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constrained.rows.references import constraint_error, velocities_asked
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.kinematics.manifold import integrate


def project_by_svd(
    mechanism: Mechanism, q: Any, v: Any, locked: tuple[int, ...] = (), time: Any = None
) -> tuple[Any, Any]:
    """Configuration (nq,) and velocity (nv,) after one step; `locked` are numbers of velocities that stay."""
    e, w = constraint_error(mechanism, q, time=time), velocities_asked(mechanism, q, time)
    J = constraint_jacobian(mechanism, q, time=time)
    free = numpy.array([float(k not in locked) for k in range(mechanism.nv)])
    found, *_ = nearest(J * free, v * free, J @ (v * (1.0 - free)) - w, RANK)
    holding = _rows_that_hold(mechanism)
    back, *_ = nearest(J * free * holding[:, None], np.zeros(mechanism.nv), e * holding, RANK)
    return integrate(mechanism.model, q, back), np.where(free > 0.0, found, v)


def _rows_that_hold(mechanism: Mechanism) -> Any:
    """1 for rows that hold positions (m,), 0 for those on velocities alone."""
    holding = numpy.ones(mechanism.m)
    for constraint, at in zip(mechanism.constraints, mechanism.row_ranges(), strict=True):
        holding[at] = float(constraint.holds_positions)
    return holding
