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
    wanted: Array,
    friction: float,
    start: Array,
    method: str,
    tolerance: float,
    iterations: int,
    known: dict[str, Any],
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
    operator = ContactOperator(system, factor, groups, known)
    velocity = operator.J @ free.v + wanted
    impulse, error, made = start, np.inf, 0
    # # Newton's method may cycle, and ADMM is slow for stiff springs: if one fails, the other continues.
    for way in {"newton": ("newton", "admm"), "admm": ("admm", "newton")}.get(method, (method,)):
        tried = _WAYS.get(way, partial(_by_problem, way))
        found, left, count = tried(operator, velocity, friction, impulse, tolerance, iterations)
        made += count
        if left < error:
            impulse, error = found, left
        if error <= tolerance:
            break
    status = solve_status(error, tolerance)
    push = operator.JT @ impulse
    change = factor.solve(push)
    v, pulled = free.v + change, free.impulse - (system.J @ change) / system.E
    solved = refine(system, factor, v, pulled, 1e-10, 20, push)
    return ContactOutcome(solved, impulse.reshape(-1, 3), error, made, status)


def _by_problem(
    way: str, operator: ContactOperator, g: Array, friction: float, start: Array, tolerance: float, iterations: int
) -> tuple[Array, float, int]:
    """Impulses (m,), the residual relative to the largest free velocity, and iterations, by a solver of
    `ContactProblem`.
    """
    problem = ContactProblem(operator, g, friction=friction)
    found = problem.solve(method=way, tolerance=tolerance, iterations=iterations, start=start)
    error = float(found.residual) / max(float(np.abs(g).max()), 1e-300)
    return np.asarray(found.impulse), error, int(found.iterations)


_WAYS: Final = {"newton": by_guesses, "sequential_impulses": sweep_to_tolerance}
