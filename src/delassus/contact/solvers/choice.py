"""The methods that solve a contact problem, by name; "auto" is the way that has been measured to be fast and sure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.control import while_loop
from delassus.contact.solvers.admm import admm
from delassus.contact.solvers.gauss_seidel import gauss_seidel
from delassus.contact.solvers.newton import ATTEMPTS, newton
from delassus.contact.solvers.progress import Best, Budget
from delassus.contact.solvers.scaled import Scaled

SWEEPS: Final = 5.0
"""Of Gauss–Seidel before Newton's method: they find most contacts' modes."""

_COMPLIANCE: Final = 1e-7
"""Of all rows, as a share of their response, where no rigid solution has been found."""


class Found(NamedTuple):
    """The best impulses, and whether they are those of rows that contradict each other."""

    best: Best
    contradictory: Any


Method = Callable[[Scaled, Best, Budget], Found]


def quick(problem: Scaled, best: Best, budget: Budget) -> Best:
    """A few sweeps and one attempt of Newton's method: enough for nine of ten problems."""
    return newton(problem, gauss_seidel(problem, best, budget, SWEEPS), budget, ATTEMPTS[:1])


def thorough(problem: Scaled, best: Best, budget: Budget) -> Found:
    """Sweeps, then Newton's method with all of its attempts, and the closest answer where there is no solution.

    One loop of at most three rounds, of which most states make one. If the first finds nothing, all rows yield a little
    in the second, so that there is a solution. What they yield, c λ, is next to nothing if the rigid problem has a
    solution, too, which is then found from there. Else it is what no impulses can achieve: rows ask for that much
    less, and are solved again.
    """
    m = problem.layout.m

    def play(carry: Any) -> Any:
        shift, rounds, last = carry
        last, soft = Best(*last), np.where(rounds == 1.0, _COMPLIANCE, 0.0)
        asked = problem._replace(G=problem.G + soft * np.eye(m), g=problem.g + shift)
        begun = Best.of(asked, np.where(rounds == 1.0, 0.0, last.impulse), last.count)
        found = newton(asked, gauss_seidel(asked, begun, budget, SWEEPS), budget)
        left = soft * found.impulse
        # What is left counts if it is that of a solution, and more than may be.
        contradictory = (found.error <= budget.tolerance) & (np.max(np.abs(left) / problem.limit) > budget.tolerance)
        shift = np.where(contradictory, left, shift)
        start = np.where(contradictory, 0.0, found.impulse)
        kept = Best.of(problem._replace(g=problem.g + shift), start, found.count)
        # A second round that found nothing is not worth keeping.
        worse = (rounds == 1.0) & ~contradictory & (kept.error > last.error)
        return shift, rounds + 1.0, tuple(kept.where(~worse, last))

    def goes_on(carry: Any) -> Any:
        return Best(*carry[2]).open(budget) & (carry[1] < 2.5)

    shift, _, last = while_loop(goes_on, play, (np.zeros(m), np.array(0.0), tuple(best)), 3)
    return Found(Best(*last), np.any(shift != 0.0))


def _alone(method: Callable[[Scaled, Best, Budget], Best]) -> Method:
    """A method that does not ask whether rows contradict each other."""
    return lambda problem, best, budget: Found(method(problem, best, budget), np.array(False))


METHODS: Final[dict[str, Method]] = {
    "auto": thorough,
    "quick": _alone(quick),
    "pgs": _alone(gauss_seidel),
    "admm": _alone(admm),
    "newton": _alone(newton),
}
"""The methods by their names; a new one is a file and a line here."""
