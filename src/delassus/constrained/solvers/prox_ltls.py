"""Proximal iterations in joint space: the augmented mass matrix M + Jᵀ ρ J, factored once along the tree.

Solves M a + c = tau + Jᵀ λ, J a + γ + C λ = 0 (see `weights`) by

    (M + Jᵀ ρ J) a = tau - c + Jᵀ (keep λ⁻ - ρ γ),      λ = keep λ⁻ - ρ (J a + γ).

Constraints with the world couple only velocities that M couples already, so the augmented matrix has M's sparsity and
M's factors U D Uᵀ. O(n d² + m d²) operations, and O(m d + n d) per iteration. Closed loops couple all their velocities,
which causes fill-in. Choose it for small, shallow robots with many rows, or for mimic joints; choose `caba` for many
loops. Penalties lose digits, as in `caba`.

Reference: A. Sathya, J. Carpentier, Constrained articulated body dynamics algorithms (2024), section IV.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.rows.inputs import NO_INPUTS, SIGNATURE, SINGLE, ConstraintInputs, row_inputs
from delassus.constrained.rows.jacobian import bias_of, jacobian_of
from delassus.constrained.rows.problem import Problem
from delassus.constrained.rows.weights import Weighted
from delassus.constrained.solvers.solver import PrimalState, Solver, solve
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.forces.rnea import bias_torques
from delassus.dynamics.mass.crba import mass_matrix
from delassus.dynamics.mass.factor import ancestors, backward, factor_tree, forward


@kernel(SIGNATURE, inputs={"rows": row_inputs()}, single=SINGLE)
def prox_ltls(
    mechanism: Mechanism, q: Traced, v: Traced, tau: Traced, *, iterations: int = 3, rows: ConstraintInputs = NO_INPUTS
) -> tuple[Floats, Floats]:
    """Accelerations (nv,) [rad/s², m/s²] and constraint forces λ (m,) [N, N·m]; arguments as for `caba`.

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> a, force = dl.prox_ltls(loop, loop.model.posture("home"), np.zeros(3), np.zeros(3))
    >>> a.shape, force.shape
    ((3,), (3,))
    """
    return solve(SOLVER, mechanism, (q, v, tau), iterations, rows)


@dataclass(frozen=True)
class Factors:
    """Quantities that do not change between iterations: J (m, nv), γ (m,), and U D Uᵀ = M + Jᵀ ρ J."""

    weighted: Weighted
    J: Any
    gamma: Any
    above: list[list[int]]
    U: Any
    D: Any
    support: list[int]


def factor(weighted: Weighted, force: Any = None) -> tuple[Factors, PrimalState]:
    """J, γ and the factors of the augmented mass matrix; the half-solved right-hand side of the first iteration."""
    problem = weighted.problem
    model, motions = problem.model, problem.motions
    J, gamma = jacobian_of(problem), bias_of(problem)
    moving = moving_dofs(problem)
    above = ancestors(model, moving)
    M = np.array(mass_matrix(model, motions.q))
    for r, dofs in enumerate(moving):
        for i in dofs:
            weighted_entry = weighted.rho[r] * J[r, i]
            for j in dofs:
                if j <= i:
                    M[j, i] = M[j, i] + weighted_entry * J[r, j]
    U, D = factor_tree(above, M)
    support = sorted({i for dofs in moving for i in dofs})
    factors = Factors(weighted, J, gamma, above, U, D, _closed(above, support))
    first = problem.first_force(force)
    c = bias_torques(model, motions.q, motions.v)
    right = problem.tau - c + J.T @ (weighted.keep * first - weighted.rho * gamma)
    return factors, _state(factors, first, backward(above, U, right) / D)


def iterate(factors: Factors, state: PrimalState) -> PrimalState:
    """One more iteration: the change of the right-hand side."""
    right = factors.J.T @ (factors.weighted.keep * (state.force - state.before))
    increment = backward(factors.above, factors.U, right, factors.support) / factors.D
    return _state(factors, state.force, state.work + increment)


def finish(factors: Factors, state: PrimalState) -> tuple[Any, Any]:
    """The accelerations of all joints, and the forces λ."""
    return forward(factors.above, factors.U, state.work), state.force


def shift_target(factors: Factors, r: Any) -> Factors:
    """The factors for rows with the target residual r (m,) instead of zero."""
    return replace(factors, gamma=factors.gamma - r)


SOLVER = Solver("prox_ltls", factor, iterate, shift_target, finish, penalties=True)


def _state(factors: Factors, before: Any, half: Any) -> PrimalState:
    """The state after an iteration, from D⁻¹ U⁻¹ of its right-hand side (nv,)."""
    a = forward(factors.above, factors.U, half, factors.support)
    weighted = factors.weighted
    force, residual = weighted.update(before, weighted.problem.active(factors.J @ a + factors.gamma))
    return PrimalState(force, before, residual, half)


def moving_dofs(problem: Problem) -> list[list[int]]:
    """For each row, the velocities that move it."""
    tree, rows = problem.motions.tree, problem.rows
    moving: list[set[int]] = [set() for _ in range(rows.m)]
    for link, link_rows in rows.links.items():
        for r in link_rows.rows:
            unmoved = tree.path(rows.layout.roots[r]) if r in rows.layout.inner else []
            moving[r] |= {v for i in tree.path(link) if i not in unmoved for v in tree.links[i].dofs}
    for dof in rows.dofs:
        moving[dof.row].add(dof.v)
    return [sorted(dofs) for dofs in moving]


def _closed(above: list[list[int]], dofs: list[int]) -> list[int]:
    """Velocities and all that they are coupled with above them in the tree."""
    return sorted({*dofs, *(i for k in dofs for i in above[k])})
