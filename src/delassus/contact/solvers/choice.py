"""Methods for contact problems by name; "auto" is a fast and reliable choice according to measurements."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import while_loop
from delassus.contact.solvers.gauss_seidel import sweep_repeatedly
from delassus.contact.solvers.newton import ATTEMPTS, newton
from delassus.contact.solvers.progress import Best, Budget, SolverResult
from delassus.contact.solvers.registry import find_solver, register_solver
from delassus.contact.systems.protocol import MATRIX, NEWTON, SWEEP
from delassus.contact.systems.scaled import Scaled

SWEEPS: Final = (6, 20)
"""Minimum and maximum number of Gauss–Seidel sweeps before Newton's method. They find most modes of contacts. Half as
many sweeps as rows cost one or two Newton iterations, and save more.
"""

_COMPLIANCE: Final = 1e-10
"""Compliance of all rows, relative to their response, if no rigid solution exists."""

_ROUGH: Final = 1e-5
"""Tolerance of that compliant problem."""

_CONTRADICTION: Final = 1e-3
"""Residual, relative to the velocity scale, above which rows are infeasible. Below it they may be rows that hardly
move.
"""


_FIRST: Final = 4.0
"""Attempts of Newton's method before the test of infeasibility."""

_LAST: Final = float(len(ATTEMPTS))


def follow_plan(problem: Scaled, best: Best, budget: Budget, plan: Any) -> Best:
    """Run a plan of three values known at run time: the number of sweeps, then the first and last attempt of Newton's
    method.
    """
    return newton(problem, sweep_repeatedly(problem, best, budget, plan[0]), budget, span=(plan[1], plan[2]))


def plans(m: int, warm: bool) -> tuple[tuple[float, float, float], ...]:
    """Successive plans for a batch; most problems are solved by the first.

    The states of a SIMD vector wait for the slowest, so plans are short, and unsolved problems are collected.
    """
    first = (float(sweeps_for(m)), 0.0, 1.0)
    restarts = ((0.0, 1.0, 2.0), (0.0, 2.0, 3.0))
    return ((0.0, 0.0, 1.0), first, *restarts) if warm else (first, *restarts)


class _Round(NamedTuple):
    """The velocity relaxed in rows (m,) [m/s], the index of the round (-1 for one without sweeps), and the best so
    far.
    """

    shift: Any
    number: Any
    best: Best


@register_solver("auto", needs={MATRIX, SWEEP, NEWTON})
def thorough(problem: Scaled, best: Best, budget: Budget) -> SolverResult:
    """Gauss–Seidel, then Newton with all attempts; the least-squares solution if the rows are infeasible.

    A loop of at most three rounds; most states need one. A warm start adds one without sweeps before them. If the first
    round fails, all rows get a compliance c in the second, so that a solution exists. Its deviation c λ is negligible
    if the rows are feasible; otherwise it is the velocity that no impulses can achieve, and the third round solves the
    problem relaxed by it. The second round ignores friction unless the law is convex: friction can jam the iteration,
    but cannot make rows infeasible.
    """
    m = problem.layout.m

    def play(now: _Round) -> _Round:
        shift, rounds, last = now
        second = rounds == 1.0
        shifted = problem._replace(
            G=problem.G + np.where(second, _COMPLIANCE, 0.0) * np.eye(m),
            g=problem.g + shift,
            friction=problem.friction if problem.convex else np.where(second, 0.0, problem.friction),
        )
        goal = budget._replace(tolerance=np.maximum(np.where(second, _ROUGH, _allowed(shift)), budget.tolerance))
        initial = Best.of(shifted, np.where(second, 0.0, last.impulse), last.count)
        initial = sweep_repeatedly(shifted, initial, goal, np.where(rounds < 0.0, 0.0, sweeps_for(m)))
        # For feasible rows, the third round continues with the attempts that remain.
        begin = np.where((rounds > 1.5) & ~np.any(shift != 0.0), _FIRST, 0.0)
        end = np.where(rounds < 0.0, 1.0, np.where(rounds < 1.5, _FIRST, _LAST))
        solution = newton(shifted, initial, goal, span=(begin, end))
        slack = np.where(second & (solution.error <= goal.tolerance), _COMPLIANCE * solution.impulse, 0.0)
        # Rows that are met up to rounding are not infeasible; they hardly move.
        contradictory = (np.max(np.abs(slack) / problem.limit) > _CONTRADICTION) & (last.error > 0.1 * _CONTRADICTION)
        shift = np.where(contradictory, slack, shift)
        start = np.where(contradictory, 0.0, solution.impulse)
        previous = Best.of(problem._replace(g=problem.g + shift), start, solution.count)
        return _Round(shift, rounds + 1.0, previous.where(contradictory | (previous.error < last.error), last))

    def goes_on(now: _Round) -> Any:
        goal = budget._replace(tolerance=np.maximum(_allowed(now.shift), budget.tolerance))
        return now.best.open(goal) & (now.number < 2.5)

    # A warm start begins without sweeps, which would move away from the initial guess.
    start = _Round(np.zeros(m), np.array(-1.0 if budget.warm else 0.0), best)
    last: _Round = while_loop(goes_on, play, start, 4)
    return SolverResult(last.best, np.any(last.shift != 0.0))


def sweeps_for(m: int) -> float:
    """Number of sweeps before Newton's method, for m rows."""
    return float(min(max(SWEEPS[0], m // 2), SWEEPS[1]))


def _allowed(shift: Any) -> Any:
    """The error allowed for infeasible rows; their residual velocity is known to this accuracy."""
    return np.where(np.any(shift != 0.0), 4.0 * _ROUGH, 0.0)


def solve_by_name(problem: Scaled, best: Best, budget: Budget, method: str) -> SolverResult:
    """Solve by the registered solver of this name; most do not test for infeasible rows."""
    law = "ccp" if problem.convex else "ncp"
    solution = find_solver(method, problem.capabilities, law).solve(problem, best, budget)
    return solution if isinstance(solution, SolverResult) else SolverResult(solution, np.array(False))
