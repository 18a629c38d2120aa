"""The kernel that solves contact problems with friction pyramids, one or a batch, and inlines into other kernels."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.host.inputs import Bundle
from delassus.compiler.host.kernel import Floats, kernel
from delassus.compiler.tracing.flow.control import while_loop
from delassus.constrained.solvers.status import Status
from delassus.contact.cones.kinds import Free
from delassus.contact.cones.layout import Layout
from delassus.contact.cones.parameters import RowParameters
from delassus.contact.solvers.dantzig import dantzig
from delassus.contact.solvers.lemke import lemke, uneven
from delassus.contact.solvers.options import SolverInputs
from delassus.contact.solvers.pyramids import Pyramids, complementarity_of
from delassus.contact.solvers.registry import find_solver, register_solver
from delassus.contact.solvers.solve import NO_INPUTS, NO_PARAMETERS, ROWS
from delassus.contact.systems.protocol import MATRIX, PYRAMIDS, TRACED
from delassus.contact.systems.scaled import Scaled, enormous, shape_of

_ATTEMPTS: Final = 3
"""Number of attempts, with different covering vectors and tolerances of ties, in case one fails by rounding errors."""

PYRAMID_SYSTEM: Final = frozenset({TRACED, MATRIX, PYRAMIDS})
"""Capabilities of a linear complementarity problem."""

_TIES: Final = (1e-7, 1e-9, 1e-8)


_SOLVER: Final = Bundle(SolverInputs, tolerance="()", iterations="()")
"""Stopping criteria; pivoting has no warm start."""


@kernel("(m,m),(m)->(m),(m),(m),(),()", inputs={"rows": ROWS, "solver": _SOLVER})
def solve_pyramids(
    layout: Layout,
    G: Any,
    g: Any,
    *,
    rows: RowParameters = NO_PARAMETERS,
    solver: SolverInputs = NO_INPUTS,
    faces: int = 4,
    pyramid: str = "inner",
    method: str = "auto",
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Impulses (m,) [N·s], velocities σ (m,) [m/s], residual (m,) [m/s], pivots, and a value of `Status`."""
    compliance = rows.compliance
    problem = Pyramids(Scaled.of(layout, False, G, g, rows), faces, pyramid)
    factors = shape_of(layout, *rows.coefficients)
    goal = 1e-8 if solver.tolerance is None else solver.tolerance
    most = 1000.0 if solver.iterations is None else solver.iterations
    best, pivots, unsolvable = find_solver(method, PYRAMID_SYSTEM, "lcp").solve(problem, goal, most)
    error = problem.error(best)
    impulse = problem.scaled.from_scaled(best, factors)
    velocity = G @ impulse + g if compliance is None else G @ impulse + compliance * impulse + g
    # Recomputed from the returned values, with responses that exclude compliance.
    plain = problem if compliance is None else problem._replace(scaled=Scaled.of(layout, False, G, g, rows.rigid))
    residuals = plain.residual(
        plain.scaled.to_scaled(impulse, factors), plain.scaled.to_scaled_velocity(velocity, factors)
    )
    residual = plain.scaled.residual_given(residuals, factors)

    inputs = [x for x in rows if x is not None]
    finite = np.isfinite(np.sum(impulse)) & np.isfinite(np.sum(G)) & np.isfinite(np.sum(g))
    for x in inputs:
        finite = finite & ~np.any(np.isnan(x))
    name = Status.NO_SOLUTION if layout.contacts and method != "dantzig" else Status.INFEASIBLE
    status = np.where(unsolvable, float(name), float(Status.ITERATIONS))
    status = np.where(_free_rows_left(problem, best) > _CONTRADICTION, float(Status.INFEASIBLE), status)
    status = np.where(error <= goal, float(Status.CONVERGED), status)
    status = np.where(finite, status, float(Status.NOT_FINITE))
    return impulse, velocity, residual, pivots, status


_CONTRADICTION: Final = 1e-4
"""Residual of free rows, relative to the velocity scale, above which they are infeasible."""


class _Attempts(NamedTuple):
    """The best impulses (m,) and their error, the number of attempts that ended in rays, pivots, and the next
    attempt.
    """

    impulse: Any
    error: Any
    rays: Any
    pivots: Any
    number: Any


@register_solver("auto", needs=PYRAMID_SYSTEM, laws=("lcp",))
@register_solver("lemke", needs=PYRAMID_SYSTEM, laws=("lcp",))
def _by_lemke(problem: Pyramids, goal: Any, most: Any) -> tuple[Any, Any, Any]:
    """Impulses (m,), pivots, and whether all attempts have ended in rays."""
    lcp = complementarity_of(problem)
    n = len(lcp.q)
    none = lcp.impulse(np.zeros(n))
    if not n:
        return none, np.array(0.0), np.array(False)
    covers = np.stack([np.ones(n), np.array(uneven(n)[::-1]), np.sqrt(np.maximum(np.diag(lcp.M), 0.1))])

    def attempt(attempts: _Attempts) -> _Attempts:
        best, error, rays, pivots, k = attempts
        result = lemke(lcp.M, lcp.q, np.take(covers, k, axis=0), np.take(np.array(_TIES), k), most - pivots)
        impulse = lcp.impulse(result.z)
        new = problem.error(impulse)
        better = new < error
        rays = rays + np.where(result.ray, 1.0, 0.0)
        best, error = np.where(better, impulse, best), np.where(better, new, error)
        return _Attempts(best, error, rays, pivots + result.pivots, k + 1.0)

    def goes_on(attempts: _Attempts) -> Any:
        return (attempts.error > goal) & (attempts.pivots < most) & (attempts.number < _ATTEMPTS - 0.5)

    start = _Attempts(none, problem.error(none), np.array(0.0), np.array(0.0), np.array(0.0))
    attempts: _Attempts = while_loop(goes_on, attempt, start, _ATTEMPTS)
    return attempts.impulse, attempts.pivots, attempts.rays > _ATTEMPTS - 0.5


@register_solver("dantzig", needs=PYRAMID_SYSTEM, laws=("lcp",))
def _by_dantzig(problem: Pyramids, goal: Any, most: Any) -> tuple[Any, Any, Any]:
    """Solve problems without friction: contacts are half-lines, and their tangents have zero impulses."""
    scaled, layout = problem.scaled, problem.scaled.layout
    lower, upper = np.zeros(layout.m), np.full(layout.m, enormous())
    lower[: len(layout.rows(Free))] = -enormous()
    if layout.intervals:
        bounds = slice(layout.scalars - layout.intervals, layout.scalars)
        lower[bounds], upper[bounds] = scaled.lower, scaled.upper
    for at in layout.blocks:
        upper[at.start : at.stop - 1] = 0.0
    size = np.max(np.abs(scaled.g))
    size = np.where(size > 0.0, size, 1.0)
    slack = np.maximum(0.1 * goal * scaled.limit / size, 1e-13)
    result = dantzig(scaled.G, scaled.g / size, lower / size, upper / size, slack, most)
    return size * result.impulse, result.pivots, result.contradictory


def _free_rows_left(problem: Pyramids, impulse: Any) -> Any:
    """The largest velocity of a free row, relative to its limit."""
    free = len(problem.scaled.layout.rows(Free))
    if not free:
        return np.array(0.0)
    return np.max(np.abs(problem.scaled.velocity(impulse))[:free] / problem.scaled.limit[:free])
