"""The Delassus matrix as an operator, G x and (G + E + C)⁻¹ b in O(n + m) operations, without forming it.

G x = J M⁻¹ Jᵀ x takes three steps: Jᵀ x on the links, the articulated-body recursion from rest without gravity, and J
of the accelerations. The inverse follows from the same operator on links with penalties ρ = (E + C)⁻¹, coupled by loops
and ties as in `caba`:

    (G + E + C)⁻¹ b = ρ b - ρ J (M + Jᵀ ρ J)⁻¹ Jᵀ ρ b.

For small ε the two terms nearly cancel, with the loss of accuracy described in `caba_osim`. Iterative refinement
restores it: x + (G + E + C)⁻¹ (b - (G + E + C) x), with products by the operator without penalties. Choose these where
m² operations are too many: for iterative solvers (conjugate gradients, ADMM) on many contacts, or for a few right-hand
sides.
"""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.common.checks import check_integer
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.delassus.by_products import damping_rows, factor
from delassus.constrained.delassus.proximal import Proximal
from delassus.constrained.elimination.articulated_tree import ArticulatedTree
from delassus.constrained.elimination.elimination import free_tree
from delassus.constrained.rows.inputs import PROXIMAL, TIME
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.constraints.mechanism.rows import Rows, row_values
from delassus.dynamics.mass.factor import udu_solve
from delassus.model.links import links_of


@kernel("(nq),(m)->(m)", inputs={"time": TIME, "proximal": PROXIMAL})
def delassus_apply(
    mechanism: Mechanism, q: Traced, x: Traced, *, time: Traced = None, proximal: Proximal = None
) -> Floats:
    """J M⁻¹ Jᵀ x (m,), or (J M⁻¹ Jᵀ + E + C) x with `proximal`, the inverse of `delassus_solve`.

    Args:
        mechanism: The robot and its constraints.
        q: Configuration (nq,) [rad, m].
        x: Forces of the rows (m,) [N, N·m].
        proximal: E = diag(ε) [1/kg, 1/(kg·m²)], one value or one per row; None omits both E and C.
        time: () [s] time of moving references, required if there are any (input at run time).

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> q, x = loop.model.posture("home"), np.ones(3)
    >>> bool(np.allclose(dl.constrained.delassus_apply(loop, q, x), dl.delassus_matrix(loop, q) @ x))
    True
    """
    if links_of(mechanism.model).mimics:
        J = constraint_jacobian(mechanism, q, time=time)
        y = J @ udu_solve(mechanism.model, q, J.T @ x)
    else:
        y = mobility(*free_tree(mechanism, q, time=time), x)
    return y if proximal is None else y + damping_rows(mechanism, proximal) * x


@kernel("(nq),(m)->(m)", inputs={"time": TIME, "proximal": PROXIMAL})
def delassus_solve(
    mechanism: Mechanism, q: Traced, b: Traced, *, refinements: int = 1, time: Traced = None, proximal: Proximal = None
) -> Floats:
    """x (m,) with (J M⁻¹ Jᵀ + E + C) x = b.

    Args:
        mechanism: The robot and its constraints. With mimic joints, the sparse factors of `prox_ltl` replace the
            recursion.
        q: Configuration (nq,) [rad, m].
        b: Accelerations of the rows (m,) [m/s², rad/s²].
        proximal: E = diag(ε) [1/kg, 1/(kg·m²)], one value or one per row; by default a millionth of the mobility of the
            rows.
        refinements: Number of refinement steps. Each divides the error by 1e6 or more; the first costs a second
            elimination of the tree.
        time: () [s] time of moving references, required if there are any (input at run time).

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> dl.constrained.delassus_solve(loop, loop.model.posture("home"), np.ones(3), proximal=1e-3).shape
    (3,)
    """
    check_integer("refinements", refinements, 0, 1000)
    if links_of(mechanism.model).mimics:
        return factor(mechanism, q, proximal, time).solve_rows(b)
    damping = damping_rows(mechanism, proximal)
    rho = 1.0 / damping
    stiff = free_tree(mechanism, q, rho, time)
    x = rho * (b - mobility(*stiff, rho * b))
    if refinements:
        free = free_tree(mechanism, q, time=time)
        for _ in range(refinements):
            r = b - mobility(*free, x) - damping * x
            x = x + rho * (r - mobility(*stiff, rho * r))
    return x


def mobility(body: ArticulatedTree, rows: Rows, x: Any) -> Any:
    """J A⁻¹ Jᵀ x (m,), A the matrix that was factored by the elimination of the tree."""
    acceleration = np.zeros(sum(link.motion.nv for link in body.tree.links))
    for i, (_, joint_acceleration) in body.pushes(rows, x).items():
        acceleration[body.joints[i].at] = joint_acceleration
    return row_values(rows, *body.accelerations(acceleration, rows.support))
