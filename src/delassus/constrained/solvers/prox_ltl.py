"""Proximal iterations by one sparse factorization of the whole system, [-E - C, J; Jᵀ, M] = U D Uᵀ.

Solves M a + c = tau + Jᵀ λ, J a + γ + C λ = 0 (see `weights`). With the rows first and velocities from the root to the
leaves, elimination from the last to the first has no fill-in beyond the nonzeros of M, J and the Delassus matrix:

    U = [U_Λ  Y; 0  U_M],   M = U_M D_M U_Mᵀ,   Y = J U_Mᵀ⁻¹ D_M⁻¹,   J M⁻¹ Jᵀ + E + C = U_Λ D_Λ U_Λᵀ,

with the diagonal (-D_Λ, D_M). O(n d² + m d² + m² d + m³) operations for depth d, m² per iteration. Choose it for its
by-products (see `kkt_factor`), or as a reference for the recursions over the tree.

References: J. Carpentier, R. Budhiraja, N. Mansard, Proximal and sparse resolution of constrained dynamic equations
(2021); R. Featherstone, Rigid Body Dynamics Algorithms (2008), section 6.5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.elimination.tree_factor import TreeFactor, tree_factor
from delassus.constrained.rows.inputs import NO_INPUTS, SIGNATURE, ConstraintInputs, row_inputs
from delassus.constrained.rows.jacobian import bias_of, jacobian_of
from delassus.constrained.rows.weights import Weighted
from delassus.constrained.solvers import dual
from delassus.constrained.solvers.solver import Solver, State, solve
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.forces.rnea import bias_torques
from delassus.dynamics.mass.factor import backward, forward


@kernel(SIGNATURE, inputs={"rows": row_inputs()})
def prox_ltl(
    mechanism: Mechanism, q: Traced, v: Traced, tau: Traced, *, iterations: int = 3, rows: ConstraintInputs = NO_INPUTS
) -> tuple[Floats, Floats]:
    """Accelerations (nv,) [rad/s², m/s²] and constraint forces λ (m,) [N, N·m]; arguments as for `caba`.

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> a, force = dl.prox_ltl(loop, loop.model.posture("home"), np.zeros(3), np.zeros(3))
    >>> a.shape, force.shape
    ((3,), (3,))
    """
    return solve(SOLVER, mechanism, (q, v, tau), iterations, rows)


@dataclass(frozen=True)
class Factors:
    """The system of the forces, the factors of M with Y, and U_M⁻¹ (tau - c) (nv,)."""

    dual: dual.Dual
    tree: TreeFactor
    half: Any


def factor(weighted: Weighted, force: Any = None) -> tuple[Factors, State]:
    """The factors, and the first iteration."""
    problem = weighted.problem
    model, q = problem.model, problem.motions.q
    tree = tree_factor(model, q, jacobian_of(problem))
    half = backward(tree.above, tree.U, problem.tau - bias_torques(model, q, problem.motions.v))
    factors = Factors(dual.factor(weighted, tree.delassus, bias_of(problem) + tree.Y @ half), tree, half)
    return factors, dual.start(factors.dual, force)


def iterate(factors: Factors, state: State) -> State:
    """One more iteration."""
    return dual.iterate(factors.dual, state)


def finish(factors: Factors, state: State) -> tuple[Any, Any]:
    """a = U_Mᵀ⁻¹ (D_M⁻¹ U_M⁻¹ (tau - c) + Yᵀ λ)."""
    tree = factors.tree
    return forward(tree.above, tree.U, factors.half / tree.D + tree.Y.T @ state.force), state.force


def shift_target(factors: Factors, r: Any) -> Factors:
    """The factors for rows with the target residual r (m,) instead of zero."""
    return replace(factors, dual=dual.shift_target(factors.dual, r))


SOLVER = Solver("prox_ltl", factor, iterate, shift_target, finish, penalties=False)
