"""The contact problem of a step, from the impulses of the step before.

Most steps change little: Newton's method from there, without smoothing, needs one or two iterations. Each of them
evaluates λ - P(λ - σ) once, which is both the error and what the next one starts from. What is left after some of
them goes to `thorough`, the way of `solve_contacts`, which no state of a group pays for that does not have to wait.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import while_loop
from delassus.contact.cones.layout import Layout
from delassus.contact.solvers.choice import thorough
from delassus.contact.solvers.elimination import solve_without_pivots
from delassus.contact.solvers.newton import matrix_of
from delassus.contact.solvers.progress import Best, Budget
from delassus.contact.solvers.scaled import Scaled, shape_of

QUICK: Final = 6
"""Iterations of Newton's method before the thorough way."""

CLOSER: Final = 1e-2
"""The share of the tolerance that Newton's method goes on to: its last iteration gives most of the digits at once."""

ITERATIONS: Final = 300.0
"""Of the thorough way, at most."""


class Solved(NamedTuple):
    """Impulses (m,), the largest residual [m/s], iterations, and whether the tolerance was met."""

    impulse: Any
    residual: Any
    iterations: Any
    done: Any


class _At(NamedTuple):
    """Impulses, their projection y = P(λ - σ), its Jacobian by blocks, the error, iterations made."""

    impulse: Any
    projected: Any
    jacobians: Any
    error: Any
    count: Any


def solved(layout: Layout, G: Any, g: Any, numbers: dict[str, Any], start: Any, tolerance: Any) -> Solved:
    """Impulses that obey the laws of contact, to a tolerance as a share of the free velocities."""
    problem = Scaled.of(layout, False, G, g, **numbers)
    factors = shape_of(layout, numbers.get("friction"), None, None)
    budget = Budget(tolerance, ITERATIONS)

    def at(impulse: Any, count: Any) -> _At:
        y, jacobians = problem.smooth(impulse - problem.velocity(impulse), 0.0)
        error = np.max(np.abs(y - impulse) / problem.limit)
        return _At(impulse, y, tuple(jacobians), error, count)

    def step(carry: Any) -> Any:
        last = _At(*carry)
        change = solve_without_pivots(matrix_of(problem, list(last.jacobians)), last.projected - last.impulse)
        return tuple(at(last.impulse + change, last.count + 1.0))

    def goes_on(carry: Any) -> Any:
        last = _At(*carry)
        return (last.error > CLOSER * tolerance) & (last.count < float(QUICK) - 0.5)

    found = _At(*while_loop(goes_on, step, tuple(at(problem.taken(start, factors), np.array(0.0))), QUICK))
    impulse, error, count = found.projected, found.error, found.count

    def all_ways(count: Any) -> Any:
        begun = Best.of(problem, np.zeros(layout.m), count)
        best = thorough(problem, begun, budget).best
        return best.impulse, best.error, best.count

    open_ = ~(error <= tolerance)
    impulse, error, count = cond(open_, all_ways, (impulse, error, count), count)
    off = problem.residual_given(impulse - problem.smooth(impulse - problem.velocity(impulse), 0.0)[0], factors)
    return Solved(problem.given(impulse, factors), np.max(np.abs(off)), count, error <= tolerance)
