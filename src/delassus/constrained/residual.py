"""How well accelerations meet the constraints, and forces without the part that moves nothing.

Constraints may contradict each other. Then J a + γ + C λ = r cannot vanish, and the best that can be had is the least
squares, Jᵀ r = 0: the residual of iterations that run on, and the measure to stop them by.
"""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.compiler.kernel import kernel
from delassus.constrained.jacobian import bias_of, constraint_bias, constraint_jacobian, jacobian_of
from delassus.constrained.task import Task
from delassus.constraints.mechanism import Mechanism
from delassus.constraints.rows import rows_of

_PARALLEL = 1e-5
"""How far from the least squares a residual may be, |Jᵀr| as a share of |J||r|, to count as one of them."""


@kernel("(nq),(nv),(nv),(m)->(m),(nv)")
def constraint_residual(mechanism: Mechanism, q: Any, v: Any, a: Any, force: Any) -> Any:
    """r = J a + γ + C λ (m,) and Jᵀ r (nv,) of accelerations a (nv,) and forces λ (m,)."""
    J = constraint_jacobian.function(mechanism, q)
    compliance = np.array(rows_of(mechanism).compliance)
    r = J @ a + constraint_bias.function(mechanism, q, v) + compliance * force
    return r, J.T @ r


def residual_of(task: Task, a: Any, force: Any) -> tuple[Any, Any]:
    """r (m,) and Jᵀ r (nv,) of a task, zero in rows that are switched off."""
    J = jacobian_of(task)
    r = J @ a + bias_of(task) + task.active(task.rows.compliance * force)
    return r, J.T @ r


def smallest_force(task: Task, force: Any, residual: Any) -> Any:
    """λ (m,) without its drift: of all forces with the same effect the smallest, where constraints contradict.

    Each iteration adds -E⁻¹ r to λ, and once r is a residual of least squares, Jᵀ E⁻¹ r = 0 and the addition moves
    nothing: λ drifts along d = E⁻¹ r. All that iterations from zero add otherwise is orthogonal to d in the metric
    of E, so the drift is the projection on d:

        λ - d (r·λ)/(r·d).

    Where the residual is not one of least squares (rows that are met, to rounding, or iterations cut short) there is
    no drift, and λ is returned as it is.
    """
    J = jacobian_of(task)
    weighted = residual / task.epsilon
    size = np.sqrt(weighted @ weighted)
    pull = J.T @ weighted
    stiff = np.sqrt(np.sum(J * J))
    drifts = np.sqrt(pull @ pull) < _PARALLEL * stiff * size
    along = residual @ weighted
    share = (residual @ force) / np.where(along > 0.0, along, 1.0)
    return np.where(drifts & (along > 0.0), force - share * weighted, force)
