"""Proximal iterations by one sparse factorisation of the whole system, [-E - C, J; Jᵀ, M] = U D Uᵀ.

Solves M a + c = tau + Jᵀ λ, J a + γ + C λ = 0 (see `task`). With the rows first and the velocities from the root to the
leaves, elimination from the last to the first fills in nothing that M, J and the Delassus matrix do not have:

    U = [U_Λ  Y; 0  U_M],   M = U_M D_M U_Mᵀ,   Y = J U_Mᵀ⁻¹ D_M⁻¹,   J M⁻¹ Jᵀ + E + C = U_Λ D_Λ U_Λᵀ,

the diagonal being (-D_Λ, D_M). O(n d² + m d² + m² d + m³) operations for depth d, m² an iteration. Choose it for its
by-products (see `kkt_factor`), or as the reference next to the recursions over the tree.

References: J. Carpentier, R. Budhiraja, N. Mansard, Proximal and sparse resolution of constrained dynamic equations
(2021); R. Featherstone, Rigid Body Dynamics Algorithms (2008), section 6.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.compiler.kernel import kernel
from delassus.constrained import dual
from delassus.constrained.jacobian import bias_of, jacobian_of
from delassus.constrained.task import ROW_INPUTS, SIGNATURE, Proximal, Task, check_iterations, task_of
from delassus.constrained.tree_factor import TreeFactor, tree_factor
from delassus.constraints.mechanism import Mechanism
from delassus.dynamics.aba import aba
from delassus.dynamics.factor import backward, forward
from delassus.dynamics.rnea import bias_torques


@kernel(SIGNATURE, inputs=ROW_INPUTS)
def prox_ltl(
    mechanism: Mechanism,
    q: Any,
    v: Any,
    tau: Any,
    *,
    iterations: int = 3,
    proximal: Proximal = 1e-6,
    mask: Any = None,
    force: Any = None,
    acceleration: Any = None,
) -> Any:
    """Accelerations (nv,) [rad/s², m/s²] and constraint forces λ (m,) [N, N·m]; arguments as for `caba`."""
    return solve(mechanism, q, v, tau, iterations, proximal, mask, force, acceleration)


def solve(
    mechanism: Mechanism,
    q: Any,
    v: Any,
    tau: Any,
    iterations: int,
    proximal: Proximal,
    mask: Any,
    force: Any,
    acceleration: Any,
) -> tuple[Any, Any]:
    """The method, as a part of others."""
    check_iterations(iterations)
    if not mechanism.m:
        return aba.function(mechanism.model, q, v, tau), np.zeros(0)
    factors = factor(task_of(mechanism, q, v, tau, proximal, mask, acceleration))
    state = dual.start(factors.dual, force)
    for _ in range(iterations - 1):
        state = dual.iterate(factors.dual, state)
    return finish(factors, state)


@dataclass(frozen=True)
class Factors:
    """The system of the forces, the factors of M with Y, and U_M⁻¹ (tau - c) (nv,)."""

    dual: dual.Dual
    tree: TreeFactor
    half: Any


def factor(task: Task) -> Factors:
    """Everything before the iterations."""
    model, q = task.mechanism.model, task.motions.q
    tree = tree_factor(model, q, jacobian_of(task))
    half = backward(tree.above, tree.U, task.tau - bias_torques.function(model, q, task.motions.v))
    return Factors(dual.factor(task, tree.delassus, bias_of(task) + tree.Y @ half), tree, half)


def finish(factors: Factors, state: dual.State) -> tuple[Any, Any]:
    """a = U_Mᵀ⁻¹ (D_M⁻¹ U_M⁻¹ (tau - c) + Yᵀ λ)."""
    tree = factors.tree
    return forward(tree.above, tree.U, factors.half / tree.D + tree.Y.T @ state.force), state.force
