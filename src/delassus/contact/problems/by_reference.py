"""Solves contact problems with external solvers, one at a time: slow, and independent of the methods here."""

from __future__ import annotations

import numpy as np

from delassus.constrained.solvers.status import Status
from delassus.contact.cones.parameters import RowParameters
from delassus.contact.problems.checks import ContactProblemError
from delassus.contact.problems.data import ContactData
from delassus.contact.problems.solution import ContactSolution
from delassus.contact.references.dual import dual_impulses
from delassus.contact.systems.scaled import Scaled, shape_of


def solve_by_reference(problem: ContactData, model: str, method: str, tolerance: float) -> ContactSolution:
    """Solve a convex problem by clarabel or proxsuite."""
    rubbing = problem.friction is not None and bool(np.any(problem.friction > 0.0))
    if rubbing and (model != "ccp" or method == "proxsuite"):
        raise ContactProblemError(
            f"method {method!r} solves convex problems: use law='ccp' and method='clarabel', or friction=0.",
            code="not-supported",
        )
    batch, m = problem.batch, problem.m
    count = int(np.prod(batch))
    problems = problem[...] if batch else problem
    impulse, velocity, residuals = (np.full((count, m), np.nan) for _ in range(3))
    iterations, status = np.zeros(count, np.int64), np.full(count, int(Status.NOT_FINITE))
    for k, at in enumerate(np.ndindex(*batch)):
        one = problems[at] if batch else problems
        G, g, layout = one.G, one.g, one.layout
        if any(np.any(np.isnan(x)) for x in one.numbers.values()) or not np.isfinite(G.sum() + g.sum()):
            continue
        rows = RowParameters(**one.numbers)
        factors = shape_of(layout, *rows.coefficients)
        scaled = Scaled.of(layout, True, G, g, rows)
        solution, iterations[k], contradictory = dual_impulses(scaled, method, tolerance)
        impulse[k] = scaled.from_scaled(solution, factors)
        velocity[k] = G @ impulse[k] + g + (0.0 if one.compliance is None else one.compliance * impulse[k])
        plain = Scaled.of(layout, True, G, g, rows.rigid)
        residual = plain.residual(plain.to_scaled(impulse[k], factors), plain.to_scaled_velocity(velocity[k], factors))
        residuals[k] = plain.residual_given(residual, factors)
        solved = scaled.error(solution, scaled.velocity(solution)) <= tolerance
        status[k] = Status.CONVERGED if solved else Status.INFEASIBLE if contradictory else Status.ITERATIONS
    impulse, velocity, residuals = (x.reshape(*batch, m) for x in (impulse, velocity, residuals))
    counts, statuses = iterations.reshape(batch), status.reshape(batch)
    return ContactSolution(problem, model, impulse, velocity, residuals, counts, statuses)
