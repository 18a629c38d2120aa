"""The contact problem of a step, by Newton's method from the impulses of the step before.

Most steps change little: without smoothing, λ = P(λ - σ) is solved in one or two iterations from there. Where that goes
in circles, sweeps of Gauss–Seidel follow, then attempts with kinks rounded by a radius e, those of `newton`. One loop
for all of it: a linear system is most of the code, and there is one. The error in an iteration is the residual that
the next one starts from.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import while_loop
from delassus.contact.cones.layout import Layout
from delassus.contact.solvers.choice import sweeps_for
from delassus.contact.solvers.elimination import solve_without_pivots
from delassus.contact.solvers.gauss_seidel import sweep
from delassus.contact.solvers.newton import ATTEMPTS, matrix_of
from delassus.contact.solvers.progress import FOREVER
from delassus.contact.solvers.scaled import Scaled, shape_of

QUICK: Final = (0.0, 0.0, 6.0, 1.0)
"""The first attempt: no smoothing, six iterations, from the impulses of the step before."""

CLOSER: Final = 1e-2
"""The share of the tolerance that iterations go on to: the last one gives most of the digits at once."""

ITERATIONS: Final = 400
"""At most."""


class Solved(NamedTuple):
    """Impulses (m,), the largest residual [m/s], iterations, and whether the tolerance was met."""

    impulse: Any
    residual: Any
    iterations: Any
    done: Any


class _At(NamedTuple):
    """λ and λ - σ (m,), radius e, attempt and iterations made in it, the best λ and its error, all iterations."""

    impulse: Any
    ahead: Any
    e: Any
    attempt: Any
    made: Any
    best: Any
    error: Any
    count: Any


def solved(layout: Layout, G: Any, g: Any, numbers: dict[str, Any], start: Any, tolerance: Any) -> Solved:
    """Impulses that obey the laws of contact, to a tolerance as a share of the free velocities."""
    problem = Scaled.of(layout, False, G, g, **numbers)
    factors = shape_of(layout, numbers.get("friction"), None, None)
    schedule, scale = np.array((QUICK, *ATTEMPTS)), np.max(np.abs(problem.g))
    zero = np.array(0.0)
    begins, shrinks, lengths, where = (schedule[:, k] for k in range(4))

    def at(impulse: Any) -> tuple[Any, Any, Any]:
        """λ - σ, its projection, and the error."""
        ahead = impulse - problem.velocity(impulse)
        projected = problem.smooth(ahead, 0.0)[0]
        return ahead, projected, np.max(np.abs(projected - impulse) / problem.limit)

    def swept_from(impulse: Any, wanted: Any) -> Any:
        """Impulses after so many sweeps of Gauss–Seidel, which find most contacts' modes."""
        start = (impulse, problem.velocity(impulse), zero)
        return while_loop(lambda c: c[2] < wanted, lambda c: (*sweep(problem, *c[:2]), c[2] + 1.0), start, FOREVER)[0]

    def step(carry: Any) -> Any:
        last = _At(*carry)
        y, jacobians = problem.smooth(last.ahead, last.e)
        far = np.max(np.abs(y - last.impulse))
        impulse = last.impulse + solve_without_pivots(matrix_of(problem, jacobians), y - last.impulse)
        ahead, projected, error = at(impulse)
        better = error < last.error
        best, least = np.where(better, projected, last.best), np.where(better, error, last.error)
        # As soon as the rounded problem is solved to the size of its rounding, round less.
        e = np.where(far <= last.e, last.e * np.take(shrinks, last.attempt), last.e)
        over = (last.made + 1.5 > np.take(lengths, last.attempt)) | ~np.isfinite(np.sum(impulse))
        attempt = np.where(over, last.attempt + 1.0, last.attempt)

        def restarted(best: Any, attempt: Any) -> tuple[Any, Any]:
            again = np.where(np.take(where, attempt) > 0.5, best, 0.0)
            again = swept_from(again, np.where(attempt < 1.5, sweeps_for(layout.m), 0.0))
            return again, again - problem.velocity(again)

        impulse, ahead = cond(over, restarted, (impulse, ahead), best, attempt)
        e = np.where(over, np.take(begins, attempt) * scale, e)
        return impulse, ahead, e, attempt, np.where(over, 0.0, last.made + 1.0), best, least, last.count + 1.0

    def goes_on(carry: Any) -> Any:
        last = _At(*carry)
        wanted = np.where(last.attempt < 0.5, CLOSER, 1.0) * tolerance
        return (last.error > wanted) & (last.attempt < float(len(ATTEMPTS)) + 0.5)

    begun = problem.taken(start, factors)
    ahead, projected, error = at(begun)
    carry = (begun, ahead, zero, zero, zero, projected, error, zero)
    found = _At(*while_loop(goes_on, step, carry, ITERATIONS))
    off = problem.residual_given(found.best - at(found.best)[1], factors)
    return Solved(problem.given(found.best, factors), np.max(np.abs(off)), found.count, found.error <= tolerance)
