"""Impulses of contacts, and what they do to the rest."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delassus.constrained.solvers.status import Status
from delassus.contact.problems.problem import ContactProblem
from delassus.particles.contact.newton import by_guesses
from delassus.particles.contact.operator import ContactOperator
from delassus.particles.contact.sweeps import swept
from delassus.particles.contact.touches import Touches
from delassus.particles.solvers.direct import refined
from delassus.particles.solvers.system import Solved, System, ended

Array = NDArray[np.float64]


class Touched(NamedTuple):
    """A solution with contacts: the impulses of contacts (c, 3), their error, iterations and status."""

    solved: Solved
    impulse: Array
    error: float
    iterations: int
    status: Status


def touched(
    system: System,
    factor: Any,
    free: Solved,
    groups: list[Touches],
    wanted: Array,
    friction: float,
    start: Array,
    method: str,
    tolerance: float,
    iterations: int,
    known: dict[str, Any],
) -> Touched:
    """From the solution without contacts, that with them.

    Args:
        system: Of the step.
        factor: Of its A.
        free: The solution without contacts.
        groups: Contacts.
        wanted: (3 c,) b of the contacts' rows [m/s].
        friction: The coefficient.
        start: (3 c,) impulses to start from [N·s].
        method: "newton", "admm", "gradient" or "sequential_impulses".
        tolerance: As of `ContactProblem.solve`.
        iterations: At most.
        known: What is kept from step to step.
    """
    operator = ContactOperator(system, factor, groups, known)
    velocity = operator.J @ free.v + wanted
    ways = {"newton": by_guesses, "sequential_impulses": swept}
    error, made, impulse = np.inf, 0, start
    if method in ways:
        impulse, error, made = ways[method](operator, velocity, friction, start, tolerance, iterations)
    if method not in ways or (method == "newton" and error > tolerance):  # guesses may run in circles; ADMM does not
        problem = ContactProblem(operator, velocity, friction=friction)
        way = "admm" if method == "newton" else method
        found = problem.solve(method=way, tolerance=tolerance, iterations=iterations, start=impulse)
        impulse, made = found.impulse, made + int(found.iterations)
        error = float(found.residual) / max(float(np.abs(velocity).max()), 1e-300)
    status = ended(error, tolerance)
    push = operator.JT @ impulse
    change = factor.solve(push)
    v, pulled = free.v + change, free.impulse - (system.J @ change) / system.E
    solved = refined(system, factor, v, pulled, 1e-10, 20, push)
    return Touched(solved, impulse.reshape(-1, 3), error, made, status)
