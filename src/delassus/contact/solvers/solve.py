"""The kernel that solves contact problems, one or a batch, and inlines into other kernels."""

from __future__ import annotations

from typing import Any, Final

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.host.inputs import Bundle
from delassus.compiler.host.kernel import Floats, kernel
from delassus.compiler.tracing.flow.control import map, while_loop
from delassus.compiler.tracing.trace import computing_in
from delassus.constrained.solvers.status import Status
from delassus.contact.cones.layout import Layout
from delassus.contact.cones.parameters import RowParameters
from delassus.contact.solvers.choice import follow_plan, solve_by_name
from delassus.contact.solvers.options import SolverInputs
from delassus.contact.solvers.progress import Best, Budget, SolverResult, initial_best
from delassus.contact.systems.scaled import Scaled, shape_of
from delassus.errors import BadArgument
from delassus.linalg.products import multiply

ROWS: Final = Bundle(
    RowParameters,
    friction="(contacts)",
    torsional="(torsional)",
    rolling="(rolling)",
    lower="(intervals)",
    upper="(intervals)",
    compliance="(m)",
)
"""Parameters of the rows of a problem."""
NO_PARAMETERS: Final = RowParameters()

SOLVER: Final = Bundle(SolverInputs, start="(m)", tolerance="()", iterations="()")
"""Start and stopping criteria."""
NO_INPUTS: Final = SolverInputs()

_DIGITS: Final = 16.0
"""Rounding error of a sum, in units in the last place."""

_ROUNDED: Final = {"float64": 1e-7, "float32": 1e-3}
"""Largest rounding error, relative to the velocity scale, that is accepted: above it, too few digits are left."""


@kernel(
    "(m,m),(m)->(m),(m),(m),(),()",
    inputs={"rows": ROWS, "solver": SOLVER, "plan": "(3)"},
)
def solve_contacts(
    layout: Layout,
    G: Traced,
    g: Traced,
    *,
    rows: RowParameters = NO_PARAMETERS,
    solver: SolverInputs = NO_INPUTS,
    plan: Traced = None,
    law: str = "ncp",
    method: str = "auto",
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Impulses (m,) [N·s], velocities σ (m,) [m/s], residual (m,) [m/s], iterations, and a value of `Status`.

    Values are not checked: a negative friction counts as zero. A plan, if there is one, replaces the method: see
    `follow_plan`. Fields of `rows` and `solver` are also keywords.

    >>> problem = dl.ContactProblem(np.eye(3), [0.0, 0.0, -1.0], friction=0.5)
    >>> dl.contact.solve_contacts(problem.layout, problem.G, problem.g, friction=[0.5])[0].round(6)
    array([0., 0., 1.])
    """
    if law not in ("ncp", "ccp"):
        raise BadArgument(f"unknown law {law!r}; the laws are: ncp, ccp.", code="unknown-law")
    start, tolerance, iterations = solver
    problem = Scaled.of(layout, law == "ccp", G, g, rows)
    factors = shape_of(layout, *rows.coefficients)
    most = 1000.0 if iterations is None else iterations
    budget = Budget(1e-8 if tolerance is None else tolerance, most, warm=start is not None)
    first = initial_best(problem, None if start is None else problem.to_scaled(start, factors))
    if plan is None:
        result = solve_by_name(problem, first, budget, method)
    else:
        result = SolverResult(follow_plan(problem, first, budget, plan), np.array(False))
    best = result.best
    impulse = problem.from_scaled(best.impulse, factors)
    velocity, residual = velocity_and_residual(layout, law, G, g, impulse, rows)

    # NaN and infinity in G or g propagate to the velocities, as zero times infinity is NaN.
    finite = np.isfinite(np.sum(impulse)) & np.isfinite(np.sum(velocity))
    for x in (*rows.rigid, start):
        finite = finite if x is None else finite & ~np.any(np.isnan(x))
    status = np.where(best.error <= budget.tolerance, float(Status.CONVERGED), float(Status.ITERATIONS))
    # The residual cannot be less than the rounding error of impulses that cancel each other.
    rounding = _DIGITS * 2.0 ** -computing_in().digits * np.max(np.abs(best.impulse)) / np.min(problem.limit)
    imprecise = (status > 0.5) & (best.error <= rounding)
    is_met = _is_met_to_rounding(problem, best, budget.tolerance, imprecise)
    status = np.where(imprecise, np.where(is_met, float(Status.CONVERGED), float(Status.PRECISION)), status)
    status = np.where(result.contradictory, float(Status.INFEASIBLE), status)
    status = np.where(finite, status, float(Status.NOT_FINITE))
    return impulse, velocity, residual, best.count, status


def velocity_and_residual(
    layout: Layout, law: str, G: Any, g: Any, impulse: Any, rows: RowParameters
) -> tuple[Any, Any]:
    """σ (m,) and the residual (m,) [m/s] of impulses (m,), with responses that exclude compliance."""
    velocity = multiply(G, impulse) + g + (0.0 if rows.compliance is None else rows.compliance * impulse)
    plain, factors = Scaled.of(layout, law == "ccp", G, g, rows.rigid), shape_of(layout, *rows.coefficients)
    scaled_impulse, scaled_velocity = plain.to_scaled(impulse, factors), plain.to_scaled_velocity(velocity, factors)
    return velocity, plain.residual_given(plain.residual(scaled_impulse, scaled_velocity), factors)


def _is_met_to_rounding(problem: Scaled, best: Best, tolerance: Any, is_needed: Any) -> Any:
    """Whether every row is met to the tolerance plus the rounding error of its impulses, evaluated where `needed`.

    Impulses of heavy bodies on light ones cancel each other: Σ |G_rk λ_k| determines the rounding error in row r. Rows
    moved only by others do not count. A loop of at most one iteration, which states that do not need it skip.
    """
    digits = _DIGITS * 2.0 ** -computing_in().digits

    def look(carry: Any) -> Any:
        _, _, impulse, velocity = carry
        rounding = digits * map(lambda row: np.sum(np.abs(row * impulse)), problem.G)
        allowed = tolerance * problem.limit + np.minimum(rounding, _ROUNDED[computing_in().name] * problem.limit)
        is_met = problem._replace(limit=allowed).error(impulse, velocity) <= 1.0
        return np.array(False), is_met, impulse, velocity

    start = (is_needed, np.array(False), best.impulse, best.velocity)
    return while_loop(lambda carry: carry[0], look, start, 1)[1]
