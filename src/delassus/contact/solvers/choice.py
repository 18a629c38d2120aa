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
"""Of Gauss–Seidel before Newton's method, at least and at most: they find most contacts' modes. Half as many as rows
take about the time of one or two iterations of Newton's method, and save more of them."""

_COMPLIANCE: Final = 1e-10
"""Of all rows, as a share of their response, where no rigid solution has been found."""

_ROUGH: Final = 1e-5
"""To what such a compliant problem is solved."""

_CONTRADICTION: Final = 1e-3
"""What rows must leave of the velocity scale to contradict each other: less could be that of rows that hardly move."""


_FIRST: Final = 4.0
"""Attempts of Newton's method before the check whether rows contradict each other."""

_LAST: Final = float(len(ATTEMPTS))


def follow_plan(problem: Scaled, best: Best, budget: Budget, plan: Any) -> Best:
    """So many sweeps, then attempts of Newton's method from one to another: three numbers that a call chooses."""
    return newton(problem, sweep_repeatedly(problem, best, budget, plan[0]), budget, span=(plan[1], plan[2]))


def plans(m: int, warm: bool) -> tuple[tuple[float, float, float], ...]:
    """How a batch is solved, one plan after the other for what is left: most problems need the first alone.

    States that are computed together wait for each other, so plans are short, and what is left is collected.
    """
    first = (float(sweeps_for(m)), 0.0, 1.0)
    rest = ((0.0, 1.0, 2.0), (0.0, 2.0, 3.0))
    return ((0.0, 0.0, 1.0), first, *rest) if warm else (first, *rest)


class _Round(NamedTuple):
    """What rows ask for less (m,) [m/s], the number of the round, -1 for one without sweeps, and the best so far."""

    shift: Any
    number: Any
    best: Best


@register_solver("auto", needs={MATRIX, SWEEP, NEWTON})
def thorough(problem: Scaled, best: Best, budget: Budget) -> SolverResult:
    """Sweeps, then Newton's method with all of its attempts, and the closest answer where there is no solution.

    One loop of at most three rounds, of which most states make one, and one more without sweeps before them after a
    warm start. If the first finds nothing, all rows yield a little in the second, so that there is a solution. What
    they yield, c λ, is next to nothing if rows can be met at all. Else it is what no impulses can achieve: rows ask for
    that much less. The third round starts from there. Friction is no part of the second, unless the model is convex: it
    can wedge, but not be the reason that there is no motion that rows allow.
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
        begun = Best.of(shifted, np.where(second, 0.0, last.impulse), last.count)
        begun = sweep_repeatedly(shifted, begun, goal, np.where(rounds < 0.0, 0.0, sweeps_for(m)))
        # The third round of rows that do not contradict each other goes on with attempts that have not been made.
        begin = np.where((rounds > 1.5) & ~np.any(shift != 0.0), _FIRST, 0.0)
        end = np.where(rounds < 0.0, 1.0, np.where(rounds < 1.5, _FIRST, _LAST))
        solution = newton(shifted, begun, goal, span=(begin, end))
        slack = np.where(second & (solution.error <= goal.tolerance), _COMPLIANCE * solution.impulse, 0.0)
        # Rows that are met but for the last digits do not contradict each other; they hardly move.
        contradictory = (np.max(np.abs(slack) / problem.limit) > _CONTRADICTION) & (last.error > 0.1 * _CONTRADICTION)
        shift = np.where(contradictory, slack, shift)
        start = np.where(contradictory, 0.0, solution.impulse)
        previous = Best.of(problem._replace(g=problem.g + shift), start, solution.count)
        return _Round(shift, rounds + 1.0, previous.where(contradictory | (previous.error < last.error), last))

    def goes_on(now: _Round) -> Any:
        goal = budget._replace(tolerance=np.maximum(_allowed(now.shift), budget.tolerance))
        return now.best.open(goal) & (now.number < 2.5)

    # A warm start begins with a round that has no sweeps, which would lead away from it.
    start = _Round(np.zeros(m), np.array(-1.0 if budget.warm else 0.0), best)
    last: _Round = while_loop(goes_on, play, start, 4)
    return SolverResult(last.best, np.any(last.shift != 0.0))


def sweeps_for(m: int) -> float:
    """Number of sweeps before Newton's method, for a number of rows."""
    return float(min(max(SWEEPS[0], m // 2), SWEEPS[1]))


def _allowed(shift: Any) -> Any:
    """The error that rows which contradict each other may have: what they leave is known to that."""
    return np.where(np.any(shift != 0.0), 4.0 * _ROUGH, 0.0)


def solve_by_name(problem: Scaled, best: Best, budget: Budget, method: str) -> SolverResult:
    """Solve by the registered solver of this name; most do not check whether rows contradict each other."""
    law = "ccp" if problem.convex else "ncp"
    solution = find_solver(method, problem.capabilities, law).solve(problem, best, budget)
    return solution if isinstance(solution, SolverResult) else SolverResult(solution, np.array(False))
