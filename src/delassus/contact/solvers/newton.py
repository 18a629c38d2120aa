"""Newton's method on λ = P(λ - σ), with P smoothed far from the solution.

Each iteration solves (I - D + D (G + ρ)) Δλ = P(λ - σ) - λ, D the Jacobian of P: m³/3 multiplications. If the modes of
the contacts (open, sticking, sliding) are right, two or three iterations converge to rounding, whatever the mass
ratios. Otherwise Newton's method may cycle. So it makes several attempts with a smooth P, whose radius e starts at the
order of the impulses and shrinks with the error. Attempts differ in their start and in how fast e shrinks; where one
fails another almost always succeeds. `NewtonRules` has the attempts, and the differences between a single problem and
that of a time step, which starts at the previous impulses.

For singular G impulses are not unique. The term ρ, or a small multiple of I, keeps them constant along the null space,
and does not change the solution.

References: P. Alart, A. Curnier (1991); X. Chen, L. Qi, D. Sun, smoothing Newton methods (1998); V. Acary, M. Brémond,
O. Huber, On solving contact problems with Coulomb friction (2018).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import while_loop
from delassus.contact.solvers.gauss_seidel import repeat_sweeps
from delassus.contact.solvers.progress import FOREVER, Best, Budget
from delassus.contact.solvers.registry import register_solver
from delassus.contact.systems.protocol import NEWTON


class Attempt(NamedTuple):
    """Options of one attempt of Newton's method.

    `radius` is the initial e, relative to the scale of impulses; `shrinks` its factor of decrease; `iterations` the
    maximum number of iterations; `from_best` is 1 to start at the best impulses, 0 to start at zero.
    """

    radius: float
    shrinks: float
    iterations: float
    from_best: float


ATTEMPTS: Final = (
    Attempt(0.0, 0.0, 5.0, 1.0),
    Attempt(0.01, 0.1, 20.0, 1.0),
    Attempt(1.0, 0.3, 45.0, 0.0),
    Attempt(10.0, 0.7, 60.0, 0.0),
    Attempt(100.0, 0.1, 40.0, 0.0),
    Attempt(0.1, 0.3, 45.0, 0.0),
    Attempt(3.0, 0.5, 50.0, 0.0),
    Attempt(30.0, 0.2, 40.0, 0.0),
    Attempt(1.0, 0.7, 60.0, 0.0),
    Attempt(100.0, 0.7, 70.0, 0.0),
    Attempt(10.0, 0.1, 40.0, 0.0),
    Attempt(0.1, 0.8, 100.0, 0.0),
    Attempt(3.0, 0.3, 45.0, 0.0),
    Attempt(100.0, 0.3, 50.0, 0.0),
    Attempt(0.01, 0.3, 70.0, 0.0),
    Attempt(30.0, 0.8, 110.0, 0.0),
    Attempt(1.0, 0.1, 40.0, 0.0),
)
"""Attempts for single problems."""


@dataclass(frozen=True)
class Proximal:
    """ρ, relative to a contact's own response: `near` in the first `at_once` iterations of the first attempt, then
    `far`, multiplied by `shrinks` in each iteration down to `near`. Later attempts use `near`.
    """

    near: float
    far: float
    at_once: float
    shrinks: float


@dataclass(frozen=True)
class NewtonRules:
    """Options of Newton's method, known at compile time.

    Attributes:
        attempts: In order.
        eager: Number of initial attempts in which e shrinks with every iteration. In the others it shrinks once the
        residual of the smoothed problem is below the smoothing error.
        sweeps: Number of Gauss–Seidel sweeps before each of the first attempts; they find most modes of contacts. If
        empty, an iteration shrinks e before its step, and its error is that of the projected impulses. Otherwise it
        shrinks e after its step, and its error is the residual of the next iteration, which saves one of two products
        with G.
        proximal: Rule for ρ, or None for the smallest value that keeps the matrix regular.
    """

    attempts: tuple[Attempt, ...] = ATTEMPTS
    eager: int = 0
    sweeps: tuple[float, ...] = ()
    proximal: Proximal | None = None


ALONE: Final = NewtonRules()
"""Rules for single problems."""


class NewtonState(NamedTuple):
    """λ and λ - σ (m,), the radius e, ρ, the attempt and its number of iterations; the best impulses (m,), their
    velocities and error, and the total number of iterations.
    """

    impulse: Any
    ahead: Any
    e: Any
    rho: Any
    attempt: Any
    made: Any
    best: Best


@register_solver("newton", needs={NEWTON})
def newton(system: Any, best: Best, budget: Budget, span: tuple[Any, Any] | None = None) -> Best:
    """Improve the best impulses by all attempts, or by those from `span[0]` to `span[1]`."""
    first, end = (0.0, float(len(ATTEMPTS))) if span is None else span
    attempt = np.array(first)
    table = np.array(ATTEMPTS)
    start = np.where(np.take(table[:, 3], attempt) > 0.5, best.impulse, 0.0)
    radius = np.take(table[:, 0], attempt) * np.max(np.abs(system.g))
    zero = np.array(0.0)
    state = NewtonState(start, zero, radius, zero, attempt, zero, best)
    return iterate_newton(system, state, ALONE, lambda now: now.best.open(budget) & (now.attempt < end - 0.5)).best


def iterate_newton(
    system: Any, state: NewtonState, rules: NewtonRules, should_continue: Callable[[NewtonState], Any]
) -> NewtonState:
    """Run iterations through the attempts of the rules until convergence."""
    schedule, scale = np.array(rules.attempts), np.max(np.abs(system.g))
    radii, shrinks, lengths, from_best = (schedule[:, k] for k in range(4))
    proximal, inverse = rules.proximal, 1.0 / system.limit if rules.sweeps else None

    def begin(impulse: Any, attempt: Any) -> tuple[Any, Any]:
        """The start of an attempt, after its sweeps."""
        no_radius = np.array(0.0)
        for k, count in reversed(list(enumerate(rules.sweeps))):
            no_radius = np.where(attempt < k + 0.5, count, no_radius)
        swept, response = repeat_sweeps(system, impulse, system.respond(impulse), no_radius)
        return swept, swept - system.velocity_of(response, swept)

    def measure(impulse: Any, best: Best) -> tuple[Any, Best]:
        """λ - σ of the next iteration, and the best impulses, updated with the projection of these."""
        if inverse is None:
            return state.ahead, best.or_better(Best.of(system, system.project(impulse), best.count + 1.0))
        target = impulse - system.velocity(impulse)
        projected = system.smooth(target, 0.0)[0]
        error = np.max(np.abs(projected - impulse) * inverse)
        better = error < best.error
        best_projected = Best(
            np.where(better, projected, best.impulse), best.velocity, np.where(better, error, best.error), 0.0
        )
        return target, best_projected._replace(count=best.count + 1.0)

    def step(last: NewtonState) -> NewtonState:
        impulse, target, e = last.impulse, last.ahead, last.e
        if rules.sweeps:
            impulse, target = cond(last.made < 0.5, begin, (impulse, target), impulse, last.attempt)
        else:
            target = impulse - system.velocity(impulse)
            gap_size = np.max(np.abs(system.smooth(target, e)[0] - impulse))
            e = np.where(gap_size <= e, e * np.take(shrinks, last.attempt), e)
        weights = system.row_weights(e)
        if weights is not None:
            target = impulse - weights * (impulse - target)
        y, slopes = system.smooth_in_metric(target, e)
        gap, rho = y - impulse, last.rho if proximal else 0.0
        gap_size = np.max(np.abs(gap))
        impulse = impulse + system.newton_direction(slopes, rho, gap, proximal, weights)
        target, best = measure(impulse, last.best)
        if rules.sweeps:
            less = (gap_size <= e) | (last.attempt < rules.eager - 0.5)
            e = np.where(less, e * np.take(shrinks, last.attempt), e)
        iterations = last.made + 1.0
        exhausted = (iterations + 0.5 > np.take(lengths, last.attempt)) | ~np.isfinite(np.sum(impulse))
        attempt = np.where(exhausted, last.attempt + 1.0, last.attempt)
        impulse = np.where(exhausted, np.where(np.take(from_best, attempt) > 0.5, best.impulse, 0.0), impulse)
        e = np.where(exhausted, np.take(radii, attempt) * scale, e)
        rho = last.rho if proximal is None else _next_rho(proximal, last.rho, iterations, attempt)
        return NewtonState(impulse, target, e, rho, attempt, np.where(exhausted, 0.0, iterations), best)

    last: NewtonState = while_loop(should_continue, step, state, FOREVER)
    return last


def _next_rho(proximal: Proximal, rho: Any, iterations: Any, attempt: Any) -> Any:
    smallest, at_once = proximal.near, proximal.at_once
    shrunk = np.maximum(proximal.shrinks * rho, smallest)
    rho = np.where(iterations == at_once, proximal.far, np.where(iterations < at_once, smallest, shrunk))
    return np.where(attempt < 0.5, rho, smallest)
