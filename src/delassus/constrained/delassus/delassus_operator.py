"""The Delassus matrix as an operator, G x and (G + E + C)⁻¹ b in O(n + m) operations, without forming it.

G x = J M⁻¹ Jᵀ x is what rows feel of their own forces: Jᵀ x on the links, the articulated-body recursion from rest
without gravity, and J of the accelerations. The inverse follows from the same operator on links that carry penalties
ρ = (E + C)⁻¹ and are coupled by loops and ties, as in `caba`:

    (G + E + C)⁻¹ b = ρ b - ρ J (M + Jᵀ ρ J)⁻¹ Jᵀ ρ b.

Its two terms nearly cancel where ε is small, which costs the digits that `caba_osim` tells of. Refinement gives them
back: x + (G + E + C)⁻¹ (b - (G + E + C) x), with the operator without penalties inside. Choose these where m² is too
many: for iterative solvers (conjugate gradients, ADMM) on many contacts, or for a few right-hand sides.
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
    """J M⁻¹ Jᵀ x (m,), or with `proximal`, (J M⁻¹ Jᵀ + E + C) x: what `delassus_solve` solves.

    Args:
        mechanism: The robot and its constraints.
        q: Configuration (nq,) [rad, m].
        x: Forces of the rows (m,) [N, N·m].
        proximal: E = diag(ε) [1/kg, 1/(kg·m²)], one number or one per row; None for neither E nor C.
        time: () [s] what rows move with, needed where they do (input at run time).

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
        mechanism: The robot and its constraints; where joints share coordinates (mimicry), the sparse factors of
            `prox_ltl` take the place of the recursion.
        q: Configuration (nq,) [rad, m].
        b: Accelerations of the rows (m,) [m/s², rad/s²].
        proximal: E = diag(ε) [1/kg, 1/(kg·m²)], one number or one per row; by default a millionth of what the rows
            yield.
        refinements: How often the residual is solved for again: each time divides the error by what penalties have
            left of the digits, 1e6 and more. The first one costs a second elimination of the tree.
        time: () [s] what rows move with, needed where they do (input at run time).

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
    """J A⁻¹ Jᵀ x (m,), A the matrix that the joints of the tree were eliminated from."""
    push = np.zeros(sum(link.motion.nv for link in body.tree.links))
    for i, (_, own) in body.pushes(rows, x).items():
        push[body.joints[i].at] = own
    return row_values(rows, *body.accelerations(push, rows.support))
