"""Geometric stiffness: derivatives of row directions with respect to the configuration.

A row pushes with Jᵀ f, and J changes with q. With forces f = λ/h of the step before, what that adds to the stiffness is

    K̃ = -Σ_i f_i ∇²g_i,      W gains h² α β K̃ = -h α β Σ_i λ_i ∇²g_i,

the minus since a stiffness is minus the derivative of a force. A rope under tension T has K̃ = T/length across it, which
keeps it straight: without, a step longer than the period of its vibration is unstable, however implicit along the rope.

In coordinates of a vector space K̃ is symmetric. On the joints' manifolds it is so but for what depends on the order of
two turns; the symmetric part is taken, the other does no work to second order. Under compression K̃ pushes away from
where it is, and W could lose its positive definiteness: what is negative of K̃ is left to the next step's J.
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
    """K̃ (nv, nv), symmetric, of forces (m,) of the rows [N, N·m]."""

    def pull(q: Any) -> Any:
        motions = LinkMotions.of(mechanism.model, q, np.zeros(mechanism.nv), time)
        return jacobian_in(rows_in(mechanism, motions), motions).T @ force

    K = -jacobian(pull)(q) @ rates_per_velocity(mechanism.model, q)
    return 0.5 * (K + K.T)


def not_negative(K: Any) -> Any:
    """½ (K + |K|) (n, n) of a symmetric K: the same without what is negative.

    Rows of K that are rotated until they are orthogonal, X, have KᵀK = XᵀX, so |K| = Xᵀ diag(1/‖x‖) X.
    """
    n = len(K)
    X = orthogonalize(K, n)
    lengths = np.sqrt(np.sum(X * X, 1))
    inverse = np.where(lengths > 0.0, 1.0 / np.where(lengths > 0.0, lengths, 1.0), 0.0)
    return 0.5 * (K + X.T @ (inverse[:, None] * X))
