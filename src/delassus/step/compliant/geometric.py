"""Geometric stiffness: derivatives of row directions with respect to the configuration.

The generalized force of a row is Jᵀ f, and J changes with q. Minus the derivative of this force is the geometric
stiffness K̃. With the forces f = λ/h of the previous step, K̃ and its term in W are

    K̃ = -Σ_i f_i ∇²g_i,      h² α β K̃ = -h α β Σ_i λ_i ∇²g_i

A rope with tension T has the transverse stiffness K̃ = T/length, which keeps it straight. Without this term, a step
longer than the period of the transverse vibration is unstable, even if the stiffness along the rope is implicit.

In coordinates of a vector space K̃ is symmetric. On the manifolds of joints it has an antisymmetric part, since
rotations do not commute; this part does no work to second order and is omitted. Under compression K̃ has negative
eigenvalues, with which W could become indefinite; only the positive semidefinite part of K̃ is used.
"""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.compiler.differentiation.derivatives import jacobian
from delassus.constrained.rows.jacobian import jacobian_in
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.constraints.mechanism.rows import rows_in
from delassus.dynamics.kinematics.manifold import rates_per_velocity
from delassus.linalg.jacobi import orthogonalize


def geometric_stiffness(mechanism: Mechanism, q: Any, force: Any, time: Any = None) -> Any:
    """The symmetric geometric stiffness K̃ (nv, nv) of row forces (m,) [N, N·m]."""

    def pull(q: Any) -> Any:
        motions = LinkMotions.of(mechanism.model, q, np.zeros(mechanism.nv), time)
        return jacobian_in(rows_in(mechanism, motions), motions).T @ force

    K = -jacobian(pull)(q) @ rates_per_velocity(mechanism.model, q)
    return 0.5 * (K + K.T)


def not_negative(K: Any) -> Any:
    """½ (K + |K|) (n, n), the positive semidefinite part of a symmetric K.

    Rotations make the rows of K orthogonal. The resulting X has KᵀK = XᵀX, so |K| = Xᵀ diag(1/‖x‖) X for its rows x.
    """
    n = len(K)
    X = orthogonalize(K, n)
    lengths = np.sqrt(np.sum(X * X, 1))
    inverse = np.where(lengths > 0.0, 1.0 / np.where(lengths > 0.0, lengths, 1.0), 0.0)
    return 0.5 * (K + X.T @ (inverse[:, None] * X))
