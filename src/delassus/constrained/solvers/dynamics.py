"""Constrained dynamics to a tolerance: each state iterates as often as it needs, and returns a status.

The iterations are a loop of compiled code (`tolerance_loop`): every state of a batch makes as many as it needs.

Along directions in which rows hardly move, errors shrink slowly, or not at all: near singular poses. Such a state is
solved by singular values instead (`gauss`), and so is one whose result does not stand the check. The check is the same
for all: the equation of motion and the rows are computed anew from a and λ (`equations`), and tell the status.
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
    """How exactly constrained dynamics is solved.

    Attributes:
        tolerance: () relative error of rows and of generalized constraint forces at which iterations end; 1e-10 by
            default, in single precision 1e-4.
        rank: () eigenvalues of J M⁻¹ Jᵀ below this share of the largest count as zero: rows that depend on each other
            but for errors of position. All states are then solved by singular values. By default 1e-12, where it
            matters.

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
        iterations: How many are made at most.
        rows: What rows are given at run time, with batch axes; its fields are keywords, too: mask, force,
            acceleration, time, proximal (by default one that suits the mechanism and the method, in any units),
            position_gain, velocity_gain.
        accuracy: When iterations end and which rows count as dependent; its fields are keywords, too: tolerance, rank.

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
    known = [x for x in (q, v, tau, rows.mask, rows.force, *rows.targets, rows.time) if x is not None]
    finite = np.isfinite(sum(np.sum(x) for x in (*known, equations.J, equations.gamma, equations.h)))

    *first, count, ended = iterate_to_tolerance(solver, equations, rows.force, tolerance, iterations)
    exhausted = ~ended & (count >= float(iterations))
    trusted = ended if rank is None else np.array(False)
    result = _check_or_fall_back(equations, tuple(first), trusted, finite & ~exhausted, tolerance, rank)

    status = np.where(exhausted, float(Status.ITERATIONS), result.status)
    finite = finite & np.isfinite(np.sum(result.a) + np.sum(result.force))
    status = np.where(finite, status, float(Status.NOT_FINITE))
    return Solution(result.a, result.force, result.residual, count, status, result.imbalance)


def _solve_unconstrained(mechanism: Mechanism, q: Any, v: Any, tau: Any) -> Solution:
    """The solution without any rows."""
    a, none = aba(mechanism.model, q, v, tau), np.zeros(0)
    status = np.where(np.isfinite(np.sum(a)), float(Status.CONVERGED), float(Status.NOT_FINITE))
    return Solution(a, none, none, np.array(0.0), status, np.zeros(mechanism.nv))


class _Result(NamedTuple):
    """Accelerations (nv,) and forces (m,), what is left of the equations, and the number of a `Status`."""

    a: Any
    force: Any
    residual: Any
    imbalance: Any
    status: Any

    @classmethod
    def of(cls, a: Any, force: Any, check: Check) -> _Result:
        """As a check says."""
        result = np.where(check.met, float(Status.CONVERGED), float(Status.LEAST_SQUARES))
        status = np.where(check.sound, result, float(Status.PRECISION))
        return cls(a, force, check.residual, check.imbalance, status)


def _check_or_fall_back(
    equations: Equations, first: tuple[Any, Any, Any], trusted: Any, replaceable: Any, tolerance: Any, rank: Any
) -> _Result:
    """The first result (a, λ, what it leaves of the rows) with its status, or that of singular values.

    Singular values replace a first result that is not `trusted` or does not stand the check, where it is
    `replaceable`. A loop of at most two rounds, each of which ends in the check, so that it is compiled once: the first
    round checks what it gets, the second solves by singular values. All that these compute with is carried, since what
    is not would be computed beforehand, for all.
    """
    problem, epsilon = equations.problem, equations.weighted.epsilon
    numbers, root = build_root(problem, equations.J, moving_dofs(problem))
    softness = numpy.sqrt(problem.rows.compliance)
    compliance = problem.active(softness) if numpy.any(softness) else None

    def solve(carry: Any) -> Any:
        _, numbers, h, gamma, _ = carry
        found = by_singular_values(root(*numbers), h, gamma, epsilon, compliance, rank)
        return np.array(False), numbers, h, gamma, tuple(found)

    def check(carry: Any) -> Any:
        _, again, numbers, h, gamma, found, _ = carry
        *_, found = while_loop(lambda carry: carry[0], solve, (again, numbers, h, gamma, found), 1)
        a, force, left = found
        check = Check(equations, a, force, tolerance, left)
        settled = trusted & check.sound & (check.met | check.is_least)
        further = ~again & replaceable & ~settled
        return further, np.array(True), numbers, h, gamma, found, tuple(_Result.of(a, force, check))

    none = _Result(*first[:2], np.zeros(problem.rows.m), np.zeros(equations.mechanism.nv), np.array(0.0))
    start = (np.array(True), np.array(False), numbers, equations.h, equations.gamma, first, tuple(none))
    *_, result = while_loop(lambda carry: carry[0], check, start, 2)
    return _Result(*result)
