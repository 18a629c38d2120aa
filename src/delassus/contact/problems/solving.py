"""Chooses and calls the kernel that solves a problem. Hard problems are solved in a second call, which is faster."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import TOLERANCES, iteration_count, number_in_range, real_array
from delassus.compiler.host.retry import Attempt, Batch, Results, has_flag, retry, select_where
from delassus.constrained.rows.counts import as_integer
from delassus.constrained.solvers.status import Status
from delassus.contact.cones.layout import Layout
from delassus.contact.large.rows import CAPABILITIES as LARGE
from delassus.contact.large.solve import solve_many_rows
from delassus.contact.problems.by_operator import solve_by_operator
from delassus.contact.problems.by_pyramids import solve_by_pyramids
from delassus.contact.problems.by_reference import solve_by_reference
from delassus.contact.problems.checks import ContactProblemError
from delassus.contact.problems.data import ContactData
from delassus.contact.problems.solution import ContactSolution
from delassus.contact.solvers.choice import plans
from delassus.contact.solvers.laws import Lcp, RigidLaw
from delassus.contact.solvers.options import SolverOptions
from delassus.contact.solvers.registry import find_solver
from delassus.contact.solvers.solve import ROWS, SOLVER, solve_contacts
from delassus.contact.systems.protocol import ENTRIES
from delassus.contact.systems.scaled import CAPABILITIES as COMPILED

LARGEST_COMPILED: Final = 36
"""Maximum number of rows of problems that are compiled, which takes up to three seconds; NumPy solves larger ones."""

_ORDER: Final = ("G", "g", *ROWS.inputs, *SOLVER.inputs, "plan")
"""The order of the kernel's inputs."""

_LARGE: Final = frozenset({*LARGE, ENTRIES})
_COMPILED: Final = frozenset({*COMPILED, ENTRIES})

_UNSOLVED: Final = float(Status.ITERATIONS)

_MANY: Final = 16
"""Minimum size of a batch whose unsolved problems are collected for a second call."""


def solve_problem(problem: ContactData, law: RigidLaw, options: SolverOptions) -> ContactSolution:
    """Solve by a law and a method.

    The states of a SIMD vector wait for the slowest of them. So a batch is first solved with few iterations; unsolved
    problems are collected and solved as a smaller batch, then by another method.
    """
    model, method, tolerance, iterations = law.name, options.method, options.tolerance, options.iterations
    start = options.start
    if not isinstance(law, Lcp) and problem.operator is None:
        solver = find_solver(method, _LARGE if problem.m > LARGEST_COMPILED else _COMPILED, model)
    iteration_count("iterations", iterations)
    number_in_range("tolerance", tolerance, TOLERANCES)
    if start is not None:
        start = real_array("start", start)
    if start is not None and np.shape(start)[-1:] != (problem.m,):
        raise ContactProblemError(
            f"start has shape {np.shape(start)}; it needs {problem.m} impulses in its last axis.", code="wrong-shape"
        )
    if start is not None and not _fits(np.shape(start)[:-1], problem.batch):
        raise ContactProblemError(
            f"start has shape {np.shape(start)}, which does not fit the batch {problem.batch}.", code="batch-mismatch"
        )
    if problem.operator is not None:
        return solve_by_operator(problem, model, method, tolerance, iterations, start)
    if isinstance(law, Lcp):
        return solve_by_pyramids(problem, method, tolerance, iterations, law.faces, law.pyramid)
    if ENTRIES in solver.needs:
        return solve_by_reference(problem, model, method, tolerance)
    arrays = {"G": problem.G, "g": problem.g, **problem.numbers}
    if start is not None:
        arrays["start"] = np.asarray(start, float)
    if problem.m > LARGEST_COMPILED:
        impulse, velocity, residuals, count, status = _solve_large(
            problem, arrays, model, method, tolerance, iterations
        )
        return ContactSolution(problem, model, impulse, velocity, residuals, as_integer(count), as_integer(status))
    first: tuple[Any, ...] = ()
    if method == "auto" and problem.batch and np.prod(problem.batch) >= _MANY:
        first = plans(problem.m, start is not None)
        arrays.setdefault("start", np.zeros(problem.m))
    plan = (*first, method, "admm") if method == "auto" else (method,)
    results: Results | None = None
    if not problem.batch:  # a single problem is mostly solved by the first plan
        results, plan = _call_kernel(problem, arrays, model, plan[0], tolerance, iterations), plan[1:]
        if results[-1] != _UNSOLVED or not plan:
            impulse, velocity, residuals, count, status = results
            return ContactSolution(problem, model, impulse, velocity, residuals, as_integer(count), as_integer(status))
    attempts = [
        Attempt(partial(_solve_by, problem, model, attempt, tolerance, iterations), has_flag(_UNSOLVED), _keep_better)
        for attempt in plan
    ]
    cores = {name: 2 if name == "G" else 1 for name in arrays}
    impulse, velocity, residuals, count, status = retry(attempts, Batch(problem.batch, arrays, cores), results=results)
    return ContactSolution(problem, model, impulse, velocity, residuals, as_integer(count), as_integer(status))


def _fits(lead: tuple[int, ...], batch: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(lead, batch) == batch
    except ValueError:
        return False


def _solve_large(
    problem: ContactData, arrays: dict[str, Any], law: str, method: str, tolerance: float, iterations: int
) -> tuple[NDArray[np.float64], ...]:
    """Solve by NumPy, one problem or a batch."""
    batch, count = problem.batch, int(np.prod(problem.batch))

    def flat(name: str, x: NDArray[np.float64]) -> NDArray[np.float64]:
        core = x.shape[x.ndim - (2 if name == "G" else 1) :]
        return np.broadcast_to(x, (*batch, *core)).reshape((count, *core))

    flattened = {name: flat(name, x) for name, x in arrays.items()}
    results = solve_many_rows(problem.layout, flattened, law, method, tolerance, iterations)
    return tuple(x.reshape((*batch, *x.shape[1:])) for x in results)


def _solve_by(
    problem: ContactData,
    law: str,
    plan: Any,
    tolerance: float,
    iterations: int,
    arrays: dict[str, Any],
    previous: Results | None,
) -> tuple[NDArray[np.float64], ...]:
    """Run a method, or a plan that continues from the impulses of the previous attempt."""
    if previous is not None and "start" in arrays:
        arrays["start"] = previous[0] if isinstance(plan, tuple) else np.zeros_like(previous[0])
    return _call_kernel(problem, arrays, law, plan, tolerance, iterations)


def _keep_better(old: Results, new: Results) -> Results:
    """Replace solutions by new ones that converged or have smaller residuals; iterations add up."""
    better = np.abs(new[2]).max(-1) < np.abs(old[2]).max(-1)
    impulse, velocity, residual, _, status = select_where(better | (new[-1] != Status.ITERATIONS), new, old)
    return impulse, velocity, residual, old[3] + new[3], status


def _call_kernel(
    problem: ContactData, arrays: dict[str, Any], law: str, plan: Any, tolerance: float, iterations: int
) -> tuple[NDArray[np.float64], ...]:
    """Call the kernel for a batch or for one problem."""
    layout, planned = problem.layout, isinstance(plan, tuple)
    inputs = {**arrays, "tolerance": float(tolerance), "iterations": float(iterations)}
    if planned:
        inputs["plan"] = np.array(plan)
    method = "auto" if planned else plan
    if problem.batch:
        G, g = inputs.pop("G"), inputs.pop("g")
        return solve_contacts(layout, G, g, **inputs, law=law, method=method)
    names = tuple(name for name in _ORDER if name in inputs)
    results: tuple[NDArray[np.float64], ...] = _single_problem_kernel(layout, names, law, method)(
        *(inputs[name] for name in names)
    )
    return results


@lru_cache(32)
def _single_problem_kernel(layout: Layout, names: tuple[str, ...], law: str, method: str) -> Any:
    """A function of the arrays of one problem."""
    return solve_contacts.specialize(layout, inputs=names[2:], law=law, method=method)
