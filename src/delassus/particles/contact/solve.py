"""Contact impulses, and their effect on the other unknowns."""

from __future__ import annotations

from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delassus.constrained.solvers.status import Status
from delassus.contact.problems.problem import ContactProblem
from delassus.particles.contact.bricks import Touches
from delassus.particles.contact.newton import by_guesses
from delassus.particles.contact.operator import ContactOperator
from delassus.particles.contact.sweeps import sweep_to_tolerance
from delassus.particles.solvers.direct import refine
from delassus.particles.solvers.system import RowSolution, System, solve_status

Array = NDArray[np.float64]


class ContactOutcome(NamedTuple):
    """A solution with contacts: the impulses of contacts (c, 3), their error, iterations and status."""

    solved: RowSolution
    impulse: Array
    error: float
    iterations: int
    status: Status


def solve_touches(
    system: System,
    factor: Any,
    free: RowSolution,
    groups: list[Touches],
    target: Array,
    friction: float,
    start: Array,
    method: str,
    tolerance: float,
    iterations: int,
    cache: dict[str, Any],
) -> ContactOutcome:
    """Solve for contact impulses, starting from the solution without contacts.

    Args:
        system: System of the step.
        factor: Factor of its A.
        free: The solution without contacts.
        groups: Contacts.
        wanted: (3 c,) b of the contacts' rows [m/s].
        friction: Coefficient of friction.
        start: (3 c,) initial impulses [N·s].
        method: "newton", "admm", "gradient" or "sequential_impulses".
        tolerance: As for `ContactProblem.solve`.
        iterations: Maximum number of iterations.
        known: Cache between steps.
    """
    operator = ContactOperator(system, factor, groups, cache)
    velocity = operator.J @ free.v + target
    impulse, error, iterations_made = start, np.inf, 0
    # Newton's method may cycle, and ADMM is slow for stiff springs: if one fails, the other continues.
    for name in {"newton": ("newton", "admm"), "admm": ("admm", "newton")}.get(method, (method,)):
        solver = _WAYS.get(name, partial(_by_problem, name))
        solution, remaining_error, count = solver(operator, velocity, friction, impulse, tolerance, iterations)
        iterations_made += count
        if remaining_error < error:
            impulse, error = solution, remaining_error
        if error <= tolerance:
            break
    status = solve_status(error, tolerance)
    contact_impulse = operator.JT @ impulse
    change = factor.solve(contact_impulse)
    v, element_impulse = free.v + change, free.impulse - (system.J @ change) / system.E
    solved = refine(system, factor, v, element_impulse, 1e-10, 20, contact_impulse)
    return ContactOutcome(solved, impulse.reshape(-1, 3), error, iterations_made, status)


def _by_problem(
    name: str, operator: ContactOperator, g: Array, friction: float, start: Array, tolerance: float, iterations: int
) -> tuple[Array, float, int]:
    """Impulses (m,), the residual relative to the largest free velocity, and iterations, by a solver of
    `ContactProblem`.
    """
    problem = ContactProblem(operator, g, friction=friction)
    solution = problem.solve(method=name, tolerance=tolerance, iterations=iterations, start=start)
    error = float(solution.residual) / max(float(np.abs(g).max()), 1e-300)
    return np.asarray(solution.impulse), error, int(solution.iterations)


_WAYS: Final = {"newton": by_guesses, "sequential_impulses": sweep_to_tolerance}
