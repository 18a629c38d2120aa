"""Constrained dynamics to a tolerance: each state iterates until it converges, and returns a status.

The iterations are a compiled loop (`tolerance_loop`), whose length may differ between the states of a batch.

Near singular poses, errors decrease slowly, or not at all, along directions in which rows hardly move. Such a state is
solved by singular values instead (`gauss`), and so is one whose result fails the check. The check is the same for all:
the equation of motion and the rows are recomputed from a and λ (`equations`), and determine the status.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.common.checks import iteration_count
from delassus.compiler.host.inputs import Bundle, Input
from delassus.compiler.host.kernel import kernel
from delassus.compiler.tracing.flow.control import while_loop
from delassus.compiler.tracing.trace import computing_in
from delassus.constrained.delassus.proximal import proximal_rows
from delassus.constrained.elimination.gauss import by_singular_values
from delassus.constrained.elimination.roots import build_root
from delassus.constrained.rows.inputs import NO_INPUTS, ConstraintInputs, row_inputs, tolerance_input
from delassus.constrained.rows.problem import Problem
from delassus.constrained.rows.weights import Weighted
from delassus.constrained.solvers.choice import solver_for
from delassus.constrained.solvers.equations import Equations
from delassus.constrained.solvers.optimality import Check
from delassus.constrained.solvers.prox_ltls import moving_dofs
from delassus.constrained.solvers.status import Solution, Status
from delassus.constrained.solvers.tolerance_loop import SHARES, iterate_to_tolerance
from delassus.constraints.mechanism.mechanism import Mechanism, refuse_unilateral
from delassus.dynamics.forces.aba import aba

_TOLERANCES: Final = {"float64": 1e-10, "float32": 1e-4}


class Accuracy(NamedTuple):
    """Accuracy of constrained dynamics.

    Attributes:
        tolerance: () relative error of rows and of generalized constraint forces at which iterations end; by default
            1e-10,
            in single precision 1e-4.
        rank: () eigenvalues of J M⁻¹ Jᵀ below this fraction of the largest count as zero. Use it for rows that are
            redundant up to position errors; all states are then solved by singular values. By default 1e-12, used only
            in states that fall back to singular values.

    >>> dl.constrained.Accuracy(tolerance=1e-8).tolerance
    1e-08
    """

    tolerance: Any = None
    rank: Any = None


USUAL: Final = Accuracy()


@kernel(
    "(nq),(nv),(nv)->(nv),(m),(m),(),(),(nv)",
    inputs={
        "rows": row_inputs(),
        "accuracy": Bundle(Accuracy, tolerance=tolerance_input(1e-10), rank=Input("()")),
    },
    result=Solution,
)
def constrained_dynamics(
    mechanism: Mechanism,
    q: Any,
    v: Any,
    tau: Any,
    *,
    method: str = "auto",
    iterations: int = 100,
    rows: ConstraintInputs = NO_INPUTS,
    accuracy: Accuracy = USUAL,
) -> Solution:
    """Accelerations and constraint forces of one state or a batch, to a tolerance.

    Args:
        mechanism: The robot and its constraints.
        q: Configurations (…, nq) [rad, m].
        v: Velocities (…, nv) [rad/s, m/s].
        tau: Generalized forces (…, nv) [N·m, N].
        method: "caba", "prox_pv", "prox_ltl", "prox_ltls", or "auto" for the fastest of them (see `best_method`).
        iterations: Maximum number of iterations.
        rows: Run-time inputs of the rows, with batch axes; its fields are also keywords: mask, force, acceleration,
            time,
            proximal (by default scaled to mechanism and method, in any units), position_gain, velocity_gain.
        accuracy: Tolerance of iterations and of redundant rows; its fields are also keywords: tolerance, rank.

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> solution = dl.constrained_dynamics(loop, loop.model.posture("home"), np.zeros(3), np.zeros(3))
    >>> print(solution.statuses)
    All rows are met to the tolerance.
    """
    solver = solver_for(mechanism, method)
    iteration_count("iterations", iterations)
    refuse_unilateral(mechanism, "constrained dynamics")
    if not mechanism.m:
        return _solve_unconstrained(mechanism, q, v, tau)
    tolerance, rank = accuracy
    tolerance = _TOLERANCES[computing_in().name] if tolerance is None else tolerance
    epsilon = proximal_rows(mechanism, rows.proximal, SHARES[computing_in().name, solver.penalties])
    weighted = Weighted.of(Problem.of(mechanism, q, v, tau, rows.mask, rows.time, rows.targets), epsilon)
    equations = Equations.of(mechanism, weighted)
    values = [x for x in (q, v, tau, rows.mask, rows.force, *rows.targets, rows.time) if x is not None]
    finite = np.isfinite(sum(np.sum(x) for x in (*values, equations.J, equations.gamma, equations.h)))

    *first, count, converged = iterate_to_tolerance(solver, equations, rows.force, tolerance, iterations)
    exhausted = ~converged & (count >= float(iterations))
    trusted = converged if rank is None else np.array(False)
    result = _check_or_fall_back(equations, tuple(first), trusted, finite & ~exhausted, tolerance, rank)

    status = np.where(exhausted, float(Status.ITERATIONS), result.status)
    finite = finite & np.isfinite(np.sum(result.a) + np.sum(result.force))
    status = np.where(finite, status, float(Status.NOT_FINITE))
    return Solution(result.a, result.force, result.residual, count, status, result.imbalance)


def _solve_unconstrained(mechanism: Mechanism, q: Any, v: Any, tau: Any) -> Solution:
    """The solution without rows."""
    a, none = aba(mechanism.model, q, v, tau), np.zeros(0)
    status = np.where(np.isfinite(np.sum(a)), float(Status.CONVERGED), float(Status.NOT_FINITE))
    return Solution(a, none, none, np.array(0.0), status, np.zeros(mechanism.nv))


class _Result(NamedTuple):
    """Accelerations (nv,) and forces (m,), residuals of both equations, and a value of `Status`."""

    a: Any
    force: Any
    residual: Any
    imbalance: Any
    status: Any

    @classmethod
    def of(cls, a: Any, force: Any, check: Check) -> _Result:
        """Create from a check."""
        result = np.where(check.met, float(Status.CONVERGED), float(Status.LEAST_SQUARES))
        status = np.where(check.sound, result, float(Status.PRECISION))
        return cls(a, force, check.residual, check.imbalance, status)


def _check_or_fall_back(
    equations: Equations, first: tuple[Any, Any, Any], trusted: Any, replaceable: Any, tolerance: Any, rank: Any
) -> _Result:
    """The first result (a, λ, the infeasible residual of the rows) with its status, or that of singular values.

    Singular values replace a first result that is not `trusted` or fails the check, where it is `replaceable`. A loop
    of at most two rounds ends in the check, so that it is compiled once: the first round checks its input, the second
    solves by singular values. All inputs are carried by the loop; others would be computed beforehand for all states.
    """
    problem, epsilon = equations.problem, equations.weighted.epsilon
    root_values, root = build_root(problem, equations.J, moving_dofs(problem))
    softness = numpy.sqrt(problem.rows.compliance)
    compliance = problem.active(softness) if numpy.any(softness) else None

    def solve(carry: Any) -> Any:
        _, root_values, h, gamma, _ = carry
        solution = by_singular_values(root(*root_values), h, gamma, epsilon, compliance, rank)
        return np.array(False), root_values, h, gamma, tuple(solution)

    def check(carry: Any) -> Any:
        _, again, root_values, h, gamma, solution, _ = carry
        *_, solution = while_loop(lambda carry: carry[0], solve, (again, root_values, h, gamma, solution), 1)
        a, force, infeasible = solution
        check = Check(equations, a, force, tolerance, infeasible)
        settled = trusted & check.sound & (check.met | check.is_least)
        further = ~again & replaceable & ~settled
        return further, np.array(True), root_values, h, gamma, solution, tuple(_Result.of(a, force, check))

    none = _Result(*first[:2], np.zeros(problem.rows.m), np.zeros(equations.mechanism.nv), np.array(0.0))
    start = (np.array(True), np.array(False), root_values, equations.h, equations.gamma, first, tuple(none))
    *_, result = while_loop(lambda carry: carry[0], check, start, 2)
    return _Result(*result)
