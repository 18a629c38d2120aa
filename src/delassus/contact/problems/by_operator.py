"""Solves contact problems whose matrix is an operator, in NumPy; see `large.operator_rows`."""

from __future__ import annotations

from typing import Any

import numpy as np

from delassus.constrained.solvers.status import Status
from delassus.contact.large.operator_rows import OperatorRows, operator_capabilities
from delassus.contact.large.progress import Best, Budget
from delassus.contact.problems.checks import ContactProblemError
from delassus.contact.problems.data import ContactData
from delassus.contact.problems.operators import diagonal
from delassus.contact.problems.solution import ContactSolution
from delassus.contact.solvers.registry import find_solver, solver_names
from delassus.contact.systems.protocol import BATCH, SHIFT


def solve_by_operator(
    problem: ContactData, model: str, method: str, tolerance: float, iterations: int, start: Any
) -> ContactSolution:
    """Solve by a solver of batches that needs only products with the matrix."""
    _check(problem, model, method)
    layout, batch = problem.layout, problem.batch
    g = np.broadcast_to(problem.g, (*batch, problem.m))
    responses = np.broadcast_to(diagonal(problem.operator), g.shape)
    parameters = {
        name: np.broadcast_to(x, (*batch, x.shape[-1])).reshape(-1, x.shape[-1]) for name, x in problem.numbers.items()
    }
    with np.errstate(all="ignore"):
        rows = OperatorRows.of(layout, model == "ccp", problem.operator, responses, g, parameters)
        best = Best.of(rows, np.zeros_like(rows.g))
        if start is not None:
            begin = rows.scaled_impulse(np.broadcast_to(start, g.shape).reshape(rows.g.shape))
            best.replace_problems(np.arange(len(rows.g)), Best.of(rows, rows.project(begin)))
        find_solver(method, rows.capabilities, model).solve(rows, best, Budget(tolerance, iterations))
        moved = rows.velocity(best.impulse)
        velocity = rows.user_residual(moved)
        residual = rows.user_residual(rows.residual(best.impulse, moved))
    impulse = rows.user_impulse(best.impulse)
    status = np.where(best.error <= tolerance, int(Status.CONVERGED), int(Status.ITERATIONS))
    status = np.where(np.isfinite(residual).all(-1), status, int(Status.NOT_FINITE))
    impulse, velocity, residual = (x.reshape(g.shape) for x in (impulse, velocity, residual))
    return ContactSolution(
        problem, model, impulse, velocity, residual, best.count.reshape(batch), status.reshape(batch)
    )


def _check(problem: ContactData, model: str, method: str) -> None:
    """Raise an error if the operator cannot be solved by this law and method."""
    methods = solver_names({BATCH, SHIFT})
    if model not in ("ncp", "ccp") or method not in methods:
        raise ContactProblemError(
            f"G is an operator: laws 'ncp' and 'ccp' with the methods {', '.join(methods)} can be solved, not law "
            f"{model!r} with method {method!r}.",
            code="not-supported",
        )
    if any(len(rows) > 3 for rows in problem.layout.friction):
        raise ContactProblemError(
            "G is an operator: its contacts have three rows, without torsional or rolling friction.",
            code="not-supported",
        )
    if method not in solver_names(operator_capabilities(problem.operator)):
        raise ContactProblemError(
            "ADMM needs an operator with solve(b, damping), and this one has none; use method='gradient'.",
            code="not-supported",
        )
