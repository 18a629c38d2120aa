"""Residuals of the constraints for given accelerations.

Constraints may be infeasible. Then r = J a + γ + C λ cannot vanish, and the solution is that of least squares, Jᵀ E⁻¹ r
= 0. This condition decides when iterations end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.host.kernel import kernel
from delassus.constrained.rows.inputs import NO_INPUTS, ConstraintInputs, row_inputs
from delassus.constrained.rows.jacobian import bias_of, jacobian_of
from delassus.constrained.rows.problem import Problem
from delassus.constraints.mechanism.mechanism import Mechanism


class Residual(NamedTuple):
    """The residual of rows, and its generalized force Jᵀ r.

    >>> loop, zero = dl.Mechanism(dl.load("four_bar")), np.zeros(3)
    >>> dl.constrained.constraint_residual(loop, loop.model.posture("home"), zero, zero, zero).rows.shape
    (3,)
    """

    rows: Any
    """r = J a + γ + C λ (…, m) [m/s², rad/s²], zero in inactive rows."""
    joints: Any
    """Jᵀ r (…, nv)."""


@kernel("(nq),(nv),(nv),(m)->(m),(nv)", inputs={"rows": row_inputs("force", "proximal")}, result=Residual)
def constraint_residual(
    mechanism: Mechanism, q: Traced, v: Traced, a: Traced, force: Traced, *, rows: ConstraintInputs = NO_INPUTS
) -> Residual:
    """r = J a + γ + C λ (m,) and Jᵀ r (nv,) of accelerations and forces, of one state or a batch.

    With equal ε for all rows, Jᵀ r = 0 means that |r| is minimal; in general, Jᵀ E⁻¹ r = 0.

    Args:
        mechanism: The robot and its constraints.
        q: Configuration (nq,) [rad, m].
        v: Velocity (nv,) [rad/s, m/s].
        a: Acceleration (nv,) [rad/s², m/s²].
        force: λ (m,) [N, N·m], used for rows with compliance.
        rows: Run-time inputs of the rows; its fields are also keywords: mask, acceleration, time, position_gain,
            velocity_gain.

    >>> loop, zero = dl.Mechanism(dl.load("four_bar")), np.zeros(3)
    >>> rows, joints = dl.constrained.constraint_residual(loop, loop.model.posture("home"), zero, zero, zero)
    """
    problem = Problem.of(mechanism, q, v, np.zeros(mechanism.nv), rows.mask, rows.time, rows.targets)
    J = jacobian_of(problem)
    r = J @ a + bias_of(problem) + problem.active(problem.rows.compliance * force)
    return Residual(r, J.T @ r)
