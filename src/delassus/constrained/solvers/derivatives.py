"""Derivatives of accelerations and constraint forces with respect to state and torques.

The iterates of all proximal methods (see `weights`) satisfy

    M a + c - Jᵀ λ = tau,      J a + γ + C λ + E (λ - λ⁻) = 0.

Differentiate along a change of x = q, v or tau. With P_x the derivative of M a + c - Jᵀ λ - tau and R_x that of J a +
γ, at fixed a and λ,

    M da + P_x - Jᵀ dλ = 0,      J da + R_x + (C + E) dλ - E dλ⁻ = 0:

which is the same iteration. With Λ = (J M⁻¹ Jᵀ + C + E)⁻¹ and Z = J M⁻¹ it reads dλ = Λ (E dλ⁻ - ρ), ρ = R_x - Z P_x.
If ρ is the same in all iterations, n of them give dλ = -Q ρ with Q = Σ (Λ E)ᵏ Λ, k < n, and then

    [da; dλ] = -[N, Bᵀ; -B, Q] [P_x; R_x],      B = Q Z,   N = M⁻¹ - Zᵀ B,

where N and -B are the derivatives with respect to tau. ρ is constant for x = v and tau, since M, J, ∂c/∂v and ∂γ/∂v
depend on neither a nor λ. For x = q it changes with the iterates, linearly in a and λ. Then e = dλ + Q ρ, with ρ of the
last iterate, follows the same recursion, driven by the differences of earlier ρ from the last one. This is exact for
the number of iterations, also for the smallest forces of redundant rows, whose null space turns with q.

At the solution, e is left out, since dλ may have no limit. A redundant row is often redundant only at the current
configuration, such as the third row of a planar loop, which becomes infeasible when the loop opens. Its ρ has a
component that no acceleration responds to, along which dλ drifts by -E⁻¹ times it in each iteration, as λ does for
infeasible rows (see `dynamics`). The drift is computed by one more iteration, and subtracted.

For infeasible rows, the solution has a least-squares residual r, Jᵀ w = 0 with w = E⁻¹ r, whose directions turn with q.
With T = ∂(Jᵀ w)/∂q at fixed w, Jᵀ dw + T dq = 0 and J da + R_q dq = E dw, which adds

    da = -Bᵀ E B T dq,      dλ = -Q E B T dq.

The iterates have the same term, from their drift of -w per iteration. It grows as 1/ε and the path e as 1/ε², so that
1e-4 of ∂a/∂q would be rounding errors if infeasible residuals are as large as accelerations. Since all is linear in the
forces, the drift is subtracted from them first, and its term is computed separately.

P_q has the recursion of `torque_derivatives`. The terms of the rows are derivatives of Jᵀ λ and J a + γ by the
compiler, which need as many operations as hand-written recursions (within 5 %, on quadrupeds, humanoids and closed
loops). O(n² d + n² m + n m²) operations for depth d.
References: J. Carpentier, R. Budhiraja, N. Mansard, Proximal and sparse resolution of constrained dynamic equations
(2021), and its derivatives in Pinocchio, which use the last ρ for all iterations.
"""

from __future__ import annotations

from typing import Any, Final

import delassus.numpy as np
from delassus.common.checks import iteration_count
from delassus.common.types import Traced
from delassus.compiler import jacobian, map, scan, while_loop
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.delassus.proximal import proximal_rows
from delassus.constrained.rows.inputs import NO_INPUTS, ConstraintInputs, row_inputs
from delassus.constrained.rows.jacobian import constraint_jacobian, link_values
from delassus.constrained.rows.problem import Problem
from delassus.constrained.rows.weights import Weighted
from delassus.constrained.solvers import prox_ltl
from delassus.constrained.solvers.solver import share_of
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.mechanism import Mechanism, refuse_unilateral
from delassus.constraints.mechanism.rows import right_hand_side, rows_in
from delassus.dynamics.derivatives.aba_derivatives import aba_derivatives
from delassus.dynamics.derivatives.columns import inverse_factor, outward
from delassus.dynamics.derivatives.rnea_derivatives import torque_derivatives
from delassus.dynamics.kinematics.manifold import coordinate_rates
from delassus.linalg.ldl import ldl
from delassus.linalg.products import mirror

_AGREE: Final = 1e-14
"""Least-squares residuals below this fraction of the rows' responses to their forces are rounding errors."""

_PURE: Final = 2
"""Iterations that remove from a drift the component that accelerations respond to."""

_UNFELT: Final = 1e-9
"""Largest response of rows to a drift before these iterations, relative to the sum over its single forces."""

_SAME_RANK: Final = 1e-6
"""Fraction of T, in the metric of M⁻¹, that may be outside the range of Jᵀ where the rank is constant."""


@kernel("(nq),(nv),(nv)->(nv,nv),(nv,nv),(nv,nv),(m,nv),(m,nv),(m,nv)", inputs={"rows": row_inputs()})
def constrained_derivatives(
    mechanism: Mechanism,
    q: Traced,
    v: Traced,
    tau: Traced,
    *,
    iterations: int = 3,
    converged: bool = False,
    rows: ConstraintInputs = NO_INPUTS,
) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
    """∂a/∂q, ∂a/∂v, ∂a/∂tau (nv, nv) and ∂λ/∂q, ∂λ/∂v, ∂λ/∂tau (m, nv); ∂q is along tangent vectors.

    They are the derivatives of `caba`, `prox_pv`, `prox_ltl` and `prox_ltls` with the same arguments, exact for the
    number of iterations.

    Args:
        mechanism: The robot and its constraints.
        q: Configuration (nq,) [rad, m].
        v: Velocity (nv,) [rad/s, m/s].
        tau: Generalized forces (nv,) [N·m, N].
        iterations: Number of iterations.
        converged: Whether the last iterate is a solution, as that of `constrained_dynamics`: faster, and without drift
            of λ or ∂λ, but inexact if iterations have not converged. For redundant rows, ∂λ/∂q is then the smallest
            derivative instead of the derivative of the smallest forces.
        rows: Run-time inputs of the rows, as for `caba`; initial forces are constants.

    >>> loop, zero = dl.Mechanism(dl.load("four_bar")), np.zeros(3)
    >>> len(dl.derivatives.constrained_derivatives(loop, loop.model.posture("home"), zero, zero))
    6
    """
    iteration_count("iterations", iterations)
    refuse_unilateral(mechanism, "constrained dynamics")
    if not mechanism.m:
        none = np.zeros((0, mechanism.nv))
        return *aba_derivatives(mechanism.model, q, v, tau), none, none, none
    epsilon = proximal_rows(mechanism, rows.proximal, share_of(prox_ltl.SOLVER))
    weighted = Weighted.of(Problem.of(mechanism, q, v, tau, rows.mask, rows.time, rows.targets), epsilon)
    factors, state = prox_ltl.factor(weighted, rows.force)
    states = [state]
    for _ in range(iterations if converged else iterations - 1):
        states.append(prox_ltl.iterate(factors, states[-1]))
    forces = [state.force for state in states]
    tree = factors.tree
    Lambda, Q = _responses(weighted, tree.delassus, iterations, converged)
    w, contradict = _drift(weighted, mirror(tree.delassus), Lambda, forces, iterations, converged)
    if converged:
        final = _without_drift(forces[-2], forces[-1], iterations)
    else:  # `_turning` adds the rest
        forces = [force + (k + 1.0) * w for k, force in enumerate(forces)]
        final = forces[-1]
    a, _ = prox_ltl.finish(factors, states[-1]._replace(force=final))

    P_q, P_v, R_q, R_v = _equations(mechanism, weighted.problem, v, a, final)
    Z = map(lambda row: outward(tree.above, tree.U, row), tree.Y)
    B, D_inverse = Q @ Z, 1.0 / tree.D
    if converged or iterations == 1:
        e = None
    else:
        e = _way(mechanism, weighted, Lambda, Z, np.stack([before - final for before in forces[:-1]]))

    def of_velocity(unit: Any, z: Any, b: Any) -> tuple[Any, Any, Any]:
        """A row of ∂a/∂q, ∂a/∂v and N, from a column of U_M⁻¹, Z and B; M⁻¹ Jᵀ = U_Mᵀ⁻¹ Yᵀ."""
        n = outward(tree.above, tree.U, unit * D_inverse - b @ tree.Y)
        by_q = -(n @ P_q) - b @ R_q
        return by_q if e is None else by_q + z @ e, -(n @ P_v) - b @ R_v, n

    def of_force(b: Any, response: Any) -> tuple[Any, Any]:
        """A row of ∂λ/∂q and ∂λ/∂v, from one of B and Q."""
        return b @ P_q - response @ R_q, b @ P_v - response @ R_v

    a_q, a_v, N = map(of_velocity, inverse_factor(tree.above, tree.U).T, Z.T, B.T)
    force_q, force_v = map(of_force, B, Q)
    if contradict is not None:
        drifts = 0 if converged else iterations
        turning = _turning(mechanism, weighted, (Z, B, Q, N, Lambda), w, contradict, drifts)
        a_q, force_q = a_q - turning[0], force_q - turning[1]
    return a_q, a_v, np.tril(N) + np.tril(N, -1).T, force_q if e is None else force_q + e, force_v, -B


def _equations(
    mechanism: Mechanism, problem: Problem, v: Any, a: Any, force: Any, *, at_rest: bool = False
) -> tuple[Any, ...]:
    """P_q, P_v (nv, nv), R_q and R_v (m, nv); at rest, for v = 0, only the terms of M a - Jᵀ λ and J a."""
    model, targets = mechanism.model, problem.targets._replace(acceleration=None)  # constant
    q, time, zero = problem.motions.q, problem.motions.time, np.zeros(mechanism.nv)

    def integrate_first_order(step: Any) -> Any:
        """`integrate`, to first order."""
        return q + coordinate_rates(model, q, step)

    def accelerations(step: Any, v: Any) -> Any:
        motions = LinkMotions.of(model, integrate_first_order(step), v, time)
        rows = rows_in(mechanism, motions)
        moving = link_values(rows, motions, a)
        return moving if at_rest else moving - right_hand_side(mechanism, rows, motions, targets)

    def torques(step: Any) -> Any:
        return constraint_jacobian(mechanism, integrate_first_order(step), time=time).T @ force

    R_q, R_v = jacobian(accelerations, (0, 1))(zero, v)
    by_q, P_v, _ = torque_derivatives(model, q, v, a, falling=not at_rest)
    return by_q - jacobian(torques)(zero), P_v, problem.active(R_q), problem.active(R_v)


def _drift(
    weighted: Weighted, G: Any, Lambda: Any, forces: list[Any], iterations: int, converged: bool
) -> tuple[Any, Any]:
    """The drift -w of forces (m,) per iteration, w = E⁻¹ r, and whether the rows are infeasible; zero for feasible
    rows.

    For iterates it is the component of the last change with G w = 0, to which accelerations do not respond. Further
    iterations keep it and contract all other components. If these are too large, iterations are far from convergence,
    and w is zero. After one iteration there is no change to compare, and None replaces the boolean.
    """
    m = weighted.problem.rows.m
    if len(forces) < 2:
        return np.zeros(m), None
    size = np.sqrt(np.stack([G[r, r] for r in range(m)]) + weighted.damping)
    w = forces[-2] - forces[-1]
    last = _without_drift(forces[-2], forces[-1], iterations) if converged else forces[-1] + float(iterations) * w
    contradict = np.max(np.abs(weighted.epsilon * w) / size) > _AGREE * np.max(np.abs(last) * size)
    if not converged:
        contradict = contradict & np.all(np.abs(G @ w) <= _UNFELT * np.sum(size * np.abs(w)) * size)
        for _ in range(_PURE):
            w = Lambda @ (weighted.epsilon * w)
    return np.where(contradict, w, 0.0), contradict


def _turning(
    mechanism: Mechanism, weighted: Weighted, responses: tuple[Any, ...], w: Any, contradict: Any, drifts: int
) -> tuple[Any, Any]:
    """Terms to subtract from derivatives (nv, nv) and (m, nv) by q for infeasible rows, from Z, B, Q, N, Λ and w (m,).

    At the solution (no drifts), Bᵀ E B T and Q E B T. If the rank of the rows is constant nearby, T is in the range of
    Jᵀ, so N T = 0. If it changes, the residual of the rows is not differentiable, and rows redundant only at this
    configuration are treated as redundant everywhere.

    For the last of n iterates, n = `drifts`, whose forces have drifted by -n w: n N T - Zᵀ e and -n B T - e, with e
    from the path of forces (n - k) w before it. For T = Jᵀ S the first is Bᵀ E S, which has no cancellation, and B T =
    S up to the convergence of the iterations.

    A loop of at most one iteration, which states with feasible rows skip.
    """
    (Z, B, Q, N, Lambda), problem = responses, weighted.problem
    model, q, time, zero = problem.model, problem.motions.q, problem.motions.time, np.zeros(mechanism.nv)
    E = np.array(weighted.epsilon)

    def turn(carry: Any) -> Any:
        _, w, _, _ = carry

        def torques(step: Any) -> Any:
            return constraint_jacobian(mechanism, q + coordinate_rates(model, q, step), time=time).T @ w

        T = jacobian(torques)(zero)
        BT, ZT, NT = (map(lambda row: row @ T, X) for X in (B, Z, N))
        same_rank = np.sum(T * NT, 0) <= _SAME_RANK * np.sum(ZT * BT, 0)
        range_part = map(lambda row, e: np.where(same_rank, e * row, 0.0), BT, E)
        by_a = map(lambda b: b @ range_part, B.T)
        if not drifts:
            return np.array(False), w, by_a, map(lambda row: row @ range_part, Q)
        e = np.zeros((mechanism.m, mechanism.nv))
        for k in range(1, drifts):
            e = Lambda @ (E[:, None] * e - (drifts - k) * ZT)
        e = Lambda @ (E[:, None] * e)
        acceleration_terms = map(lambda n, z: drifts * n - z @ e, NT, Z.T)
        return np.array(False), w, np.where(same_rank, by_a, acceleration_terms), -drifts * BT - e

    nothing = np.zeros((mechanism.nv, mechanism.nv)), np.zeros((mechanism.m, mechanism.nv))
    start = (contradict, problem.active(w), *nothing)
    *_, by_a, by_force = while_loop(lambda carry: carry[0], turn, start, 1)
    return by_a, by_force


def _responses(weighted: Weighted, G: Any, iterations: int, converged: bool) -> tuple[Any, Any]:
    """Λ and Q (m, m), both symmetric: the responses of one and of all iterations to -ρ, without drift if they
    converge.
    """
    factors = ldl(G + np.diag(weighted.damping))

    def column(unit: Any) -> tuple[Any, Any]:
        responses = [factors.solve(unit)]
        for _ in range(iterations if converged else iterations - 1):
            responses.append(factors.solve(unit + weighted.epsilon * responses[-1]))
        if converged:
            return responses[0], _without_drift(responses[-2], responses[-1], iterations)
        return responses[0], responses[-1]

    Lambda, Q = map(column, np.eye(weighted.problem.rows.m))
    return Lambda, Q


def _without_drift(last: Any, further: Any, iterations: int) -> Any:
    """The result of a number of iterations from zero, from the result and that of one more iteration."""
    return last - float(iterations) * (further - last)


def _way(mechanism: Mechanism, weighted: Weighted, Lambda: Any, Z: Any, forces: Any) -> Any:
    """e (m, nv) after the last iteration, from the earlier forces (n - 1, m) minus the last ones."""
    zero = np.zeros(mechanism.nv)
    E = np.array(weighted.epsilon)[:, None]

    def iteration(e: Any, force: Any) -> tuple[Any, None]:
        P, _, R, _ = _equations(mechanism, weighted.problem, zero, force @ Z, force, at_rest=True)
        return Lambda @ (E * e - R + map(lambda z: z @ P, Z)), None

    e, _ = scan(iteration, np.zeros((mechanism.m, mechanism.nv)), forces)
    return Lambda @ (E * e)
