"""The constrained articulated-body algorithm: accelerations and constraint forces in O(n + m) per iteration.

Solves M a + c = tau + Jᵀ λ, J a + γ + C λ = 0 by proximal iterations (see `weights`) without forming M, J or a Delassus
matrix. A constraint K a = k on a link is a penalty: ρ KᵀK is added to the link's inertia, Kᵀ(ρ k + keep λ⁻) to its
forces, and the articulated-body recursion solves for a (see `elimination`). Further iterations change forces only, so
two sweeps over the links that move constraints give the next accelerations; the other links are visited once, at the
end.

A row on several links couples them: ρ K_jᵀK_i is the inertia between links j and i (see `couplings`). When a link is
eliminated, its couplings pass to its parent, so a loop costs operations along its own links, and on the path to the
link where it closes. The same holds for rows that tie joints to each other, or to bodies: gears, grippers, functions of
the user.

Choose it for robots with many joints or many rows: its cost is linear in both. Penalties lose about log10(ρ/mass)
digits: in single precision, or for a few rows on a small robot, choose `prox_pv` or `prox_ltl`.

Reference: A. Sathya, J. Carpentier, Constrained articulated body dynamics algorithms (2024), algorithm 2, with the
joint forces u accumulated over iterations; A. Sathya, J. Carpentier, Constrained articulated body dynamics
for closed loops (2025), algorithm 1, with the signs of its equation 30e and lines 19 and 29 corrected.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.elimination.articulated_tree import ArticulatedTree
from delassus.constrained.elimination.elimination import Loads, eliminate_joints
from delassus.constrained.rows.inputs import NO_INPUTS, SIGNATURE, SINGLE, ConstraintInputs, row_inputs
from delassus.constrained.rows.weights import Weighted
from delassus.constrained.solvers import prox_ltls
from delassus.constrained.solvers.solver import PrimalState, Solver, solve
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.constraints.mechanism.rows import against_gravity, row_values
from delassus.dynamics.tree.poses import Pair
from delassus.dynamics.tree.sweep import world_acceleration


@kernel(SIGNATURE, inputs={"rows": row_inputs()}, single=SINGLE)
def caba(
    mechanism: Mechanism, q: Traced, v: Traced, tau: Traced, *, iterations: int = 3, rows: ConstraintInputs = NO_INPUTS
) -> tuple[Floats, Floats]:
    """Accelerations (nv,) [rad/s², m/s²] and constraint forces λ (m,) [N, N·m].

    Args:
        mechanism: The robot and its constraints.
        q: Configuration (nq,) [rad, m].
        v: Velocity (nv,) [rad/s, m/s].
        tau: Generalized forces (nv,) [N·m, N].
        iterations: Number of proximal iterations, unrolled.
        rows: Run-time inputs of the rows; its fields are also keywords: mask, force, acceleration, time, proximal,
            position_gain, velocity_gain.

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> q, v, tau = loop.model.posture("home"), np.zeros(3), np.zeros(3)
    >>> a, force = dl.caba(loop, q, v, tau)
    >>> a.shape, force.shape
    ((3,), (3,))
    """
    return solve(SOLVER, mechanism, (q, v, tau), iterations, rows)


@dataclass(frozen=True)
class Factors:
    """Quantities that do not change between iterations: the joints' factors, and the right-hand side k - K g (m,)."""

    weighted: Weighted
    body: ArticulatedTree
    k: Any


def factor(weighted: Weighted, force: Any = None) -> tuple[Factors, PrimalState]:
    """Inward: articulated inertias with the penalties of the constraints, and all forces, for the first iteration."""
    problem = weighted.problem
    first, k = problem.first_force(force), against_gravity(problem.rows, problem.motions, problem.k)
    loads = Loads(problem.tau, weighted.keep * first + weighted.rho * k)
    body, push = eliminate_joints(problem.motions, problem.rows, weighted.rho, loads)
    factors = Factors(weighted, body, k)
    return factors, _state(factors, first, push)


def iterate(factors: Factors, state: PrimalState) -> PrimalState:
    """One more iteration: propagate the change of the constraint forces through the joints that carry them."""
    weighted, body = factors.weighted, factors.body
    change = weighted.keep * (state.force - state.before)
    push = np.array(state.work)
    for i, (_, increment) in body.pushes(weighted.problem.rows, change).items():
        at = body.joints[i].at
        push[at] = push[at] + increment
    return _state(factors, state.force, push)


def finish(factors: Factors, state: PrimalState) -> tuple[Any, Any]:
    """The accelerations of all joints, and the forces λ."""
    return _accelerations(factors, state.work, factors.body.order)[1], state.force


def shift_target(factors: Factors, r: Any) -> Factors:
    """The factors for rows with the target residual r (m,) instead of zero."""
    return replace(factors, k=factors.k + r)


SOLVER = Solver("caba", factor, iterate, shift_target, finish, penalties=True, in_joint_space=prox_ltls.SOLVER)


def _state(factors: Factors, before: Any, push: Any) -> PrimalState:
    """The state after an iteration: outward to the constraints with D⁻¹ u (nv,), and their forces from λ⁻ (m,)."""
    weighted, problem = factors.weighted, factors.weighted.problem
    moving = _accelerations(factors, push, problem.rows.support)
    force, residual = weighted.update(before, problem.active(row_values(problem.rows, *moving) - factors.k))
    return PrimalState(force, before, residual, push)


def _accelerations(factors: Factors, push: Any, links: tuple[int, ...]) -> tuple[dict[int, Pair], Any, dict[int, Any]]:
    """Accelerations of `links` (and their carriers), against gravity, of their joints (nv,), and of ties."""
    motions = factors.weighted.problem.motions
    return factors.body.accelerations(push, links, world_acceleration(motions.tree), motions.product)
