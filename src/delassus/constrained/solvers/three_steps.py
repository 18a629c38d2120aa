"""The textbook solution in three steps: free acceleration, Delassus matrix, constraint forces by Cholesky.

    a_free = M⁻¹ (tau - c),   (J M⁻¹ Jᵀ + C) λ = -(J a_free + γ),   a = a_free + M⁻¹ Jᵀ λ.

Exact without iterations if the rows are independent. Otherwise a pivot of the factorization vanishes: its row is left
out (zero force), and the status reports it. Choose it for comparisons; `prox_ltl` costs as much and works at any rank.

Reference: F. Udwadia, R. Kalaba, A new perspective on constrained motion (1992), in the form of the textbooks.
"""

from __future__ import annotations

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.elimination.tree_factor import tree_factor
from delassus.constrained.rows.jacobian import constraint_bias, constraint_jacobian
from delassus.constrained.solvers.status import Status
from delassus.constraints.mechanism.mechanism import Mechanism, refuse_unilateral
from delassus.constraints.mechanism.rows import compliance_of
from delassus.dynamics.forces.aba import aba
from delassus.dynamics.forces.rnea import bias_torques
from delassus.dynamics.mass.factor import backward, forward
from delassus.dynamics.tree.check import check_inertias
from delassus.linalg.ldl import ldl_semidefinite


@kernel("(nq),(nv),(nv)->(nv),(m),()", inputs={"time": "()"})
def three_steps(
    mechanism: Mechanism, q: Traced, v: Traced, tau: Traced, *, time: Traced = None
) -> tuple[Floats, Floats, Floats]:
    """Accelerations (nv,) [rad/s², m/s²], constraint forces λ (m,) [N, N·m], and a value of `Status`.

    `time` [s] is that of moving references (input at run time), required if there are any.

    >>> arm = dl.Mechanism(dl.load("double_pendulum"), dl.Point("tip", rows="x"))
    >>> a, force, status = dl.constrained.three_steps(arm, [0.1, 0.2], np.zeros(2), np.zeros(2))
    """
    check_inertias(mechanism.model)
    refuse_unilateral(mechanism, "constrained dynamics")
    if not mechanism.m:
        return aba(mechanism.model, q, v, tau), np.zeros(0), np.array(float(Status.CONVERGED))
    tree = tree_factor(mechanism.model, q, constraint_jacobian(mechanism, q, time=time))
    half = backward(tree.above, tree.U, tau - bias_torques(mechanism.model, q, v))
    b = constraint_bias(mechanism, q, v, time=time) + tree.Y @ half
    factors, rank_loss = ldl_semidefinite(tree.delassus + np.diag(compliance_of(mechanism)))
    force = -factors.solve(b)
    a = forward(tree.above, tree.U, half / tree.D + tree.Y.T @ force)
    finite = np.isfinite(np.sum(a) + np.sum(force))
    status = np.where(rank_loss, float(Status.RANK_LOSS), float(Status.CONVERGED))
    return a, force, np.where(finite, status, float(Status.NOT_FINITE))
