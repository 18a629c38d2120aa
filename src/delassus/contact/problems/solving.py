"""From a problem to its solution: which kernel is called, and twice where that is faster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.constrained.rows.counts import whole
from delassus.constrained.rows.options import check_iterations, check_method, checked_tolerance
from delassus.constrained.solvers.status import Status
from delassus.contact.problems.by_pyramids import solve_by_pyramids
from delassus.contact.problems.by_reference import solve_by_reference
from delassus.contact.problems.checks import ContactProblemError
from delassus.contact.problems.solution import ContactSolution
from delassus.contact.references.dual import REFERENCES
from delassus.contact.solvers.choice import METHODS
from delassus.contact.solvers.solve import solve_contacts

if TYPE_CHECKING:
    from delassus.contact.problems.problem import ContactProblem

MODELS: Final = ("ncp", "ccp", "lcp")

_MANY: Final = 16
"""Problems from which on those that are not solved at once are collected and solved apart."""


def solve_problem(
    problem: ContactProblem,
    model: str,
    method: str,
    tolerance: float,
    iterations: int,
    start: Any,
    faces: int = 4,
    pyramid: str = "inner",
) -> ContactSolution:
    """The solution by a model and a method.

    States of a batch that are computed together wait for the slowest of them. So a batch is tried quickly first, and
    what is left is solved as a batch of its own.
    """
    if model not in MODELS:
        raise ContactProblemError(f"there is no model {model!r}; the models are: {', '.join(MODELS)}.")
    if model != "lcp":
        check_method(method, (*METHODS, *REFERENCES))
    check_iterations(iterations)
    checked_tolerance(tolerance, 1e-8)
    if start is not None and np.shape(start)[-1:] != (problem.m,):
        raise ContactProblemError(f"start has shape {np.shape(start)}; it needs {problem.m} impulses in its last axis.")
    if method in REFERENCES:
        return solve_by_reference(problem, model, method, tolerance)
    if model == "lcp":
        return solve_by_pyramids(problem, method, tolerance, iterations, faces, pyramid)
    arrays = {"G": problem.G, "g": problem.g, **problem.numbers}
    if start is not None:
        arrays["start"] = np.asarray(start, float)
    count = int(np.prod(problem.batch))
    first = "quick" if method == "auto" and count >= _MANY else method
    found = _solved(problem, arrays, model, first, tolerance, iterations)
    if first != method:
        left = np.flatnonzero(found[-1].reshape(-1) == Status.ITERATIONS)
        if left.size:
            core = {"G": 2}
            some = {
                name: np.broadcast_to(x, (*problem.batch, *x.shape[x.ndim - core.get(name, 1) :])).reshape(
                    count, *x.shape[x.ndim - core.get(name, 1) :]
                )[left]
                for name, x in arrays.items()
            }
            again = _solved(problem, some, model, method, tolerance, iterations)
            for old, new in zip(found, again, strict=True):
                old.reshape(count, *old.shape[len(problem.batch) :])[left] = new
    impulse, velocity, residuals, made, status = found
    return ContactSolution(problem, model, impulse, velocity, residuals, whole(made), whole(status))


def _solved(
    problem: ContactProblem, arrays: dict[str, Any], law: str, method: str, tolerance: float, iterations: int
) -> tuple[NDArray[np.float64], ...]:
    given = {name: x for name, x in arrays.items() if name not in ("G", "g")}
    limits = {"tolerance": float(tolerance), "iterations": float(iterations)}
    return solve_contacts(problem.layout, arrays["G"], arrays["g"], **given, **limits, law=law, method=method)
