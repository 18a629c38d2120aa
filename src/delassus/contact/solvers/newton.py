"""Newton's method on λ = P(λ - σ), with the kinks of P rounded as long as it is far away.

Each iteration solves (I - D + D G) Δλ = P(λ - σ) - λ, D the Jacobian of P: m³/3 multiplications. From a guess that has
the contacts' modes right (open, sticking, sliding) two or three of them give all digits, whatever the mass ratios.
Elsewhere it may go in circles, so a number of attempts follow: P is smooth first, with a radius e of the order of the
impulses, and e shrinks with the error. They differ in where they start and how fast e shrinks; what one of them does
not find another one does, almost always.

Impulses that are not unique, in a G that is singular, stay what they are along its null space: I - D + D G has a small
multiple of I added.

References: P. Alart, A. Curnier (1991); X. Chen, L. Qi, D. Sun, smoothing Newton methods (1998); V. Acary, M. Brémond,
O. Huber, On solving contact problems with Coulomb friction (2018).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import while_loop
from delassus.contact.solvers.progress import FOREVER, Best, Budget
from delassus.contact.solvers.scaled import Scaled
from delassus.linalg.filtered import regularization
from delassus.linalg.lu import solve_without_pivots

ATTEMPTS: Final = (
    # e at the beginning, as a share of the impulses' scale; by what it shrinks; iterations; from the best or from zero
    (0.0, 0.0, 5.0, 1.0),
    (0.01, 0.1, 20.0, 1.0),
    (1.0, 0.3, 45.0, 0.0),
    (10.0, 0.7, 60.0, 0.0),
    (100.0, 0.1, 40.0, 0.0),
    (0.1, 0.3, 45.0, 0.0),
    (3.0, 0.5, 50.0, 0.0),
    (30.0, 0.2, 40.0, 0.0),
    (1.0, 0.7, 60.0, 0.0),
    (100.0, 0.7, 70.0, 0.0),
    (10.0, 0.1, 40.0, 0.0),
    (0.1, 0.8, 100.0, 0.0),
    (3.0, 0.3, 45.0, 0.0),
    (100.0, 0.3, 50.0, 0.0),
    (0.01, 0.3, 70.0, 0.0),
    (30.0, 0.8, 110.0, 0.0),
    (1.0, 0.1, 40.0, 0.0),
)


class _Attempt(NamedTuple):
    """Impulses (m,) of an attempt, its radius e, its number, the iterations that it has had, and the best so far."""

    impulse: Any
    e: Any
    number: Any
    count: Any
    best: Best


def newton(
    problem: Scaled,
    best: Best,
    budget: Budget,
    attempts: tuple[tuple[float, ...], ...] = ATTEMPTS,
    span: tuple[Any, Any] | None = None,
) -> Best:
    """From the best impulses so far to better ones, by some attempts, or by those of them that `span` says."""
    first, end = (0.0, float(len(attempts))) if span is None else span
    schedule, scale = np.array(attempts), np.max(np.abs(problem.g))
    begins, shrinks, lengths, where = (schedule[:, k] for k in range(4))

    def goes_on(now: _Attempt) -> Any:
        return now.best.open(budget) & (now.number < end - 0.5)

    def step(now: _Attempt) -> _Attempt:
        impulse, e, attempt, last = now.impulse, now.e, now.number, now.best
        x = impulse - problem.velocity(impulse)
        # As soon as the rounded problem is solved to the size of its rounding, round less.
        far = np.max(np.abs(problem.smooth(x, e)[0] - impulse))
        e = np.where(far <= e, e * np.take(shrinks, attempt), e)
        y, jacobians = problem.smooth(x, e)
        moved = impulse + solve_without_pivots(matrix_of(problem, jacobians), y - impulse)
        found = last.or_better(Best.of(problem, problem.projected(moved), last.count + 1.0))
        over = (now.count + 1.5 > np.take(lengths, attempt)) | ~np.isfinite(np.sum(moved))
        attempt = np.where(over, attempt + 1.0, attempt)
        again = np.where(np.take(where, attempt) > 0.5, found.impulse, 0.0)
        impulse = np.where(over, again, moved)
        e = np.where(over, np.take(begins, attempt) * scale, e)
        return _Attempt(impulse, e, attempt, np.where(over, 0.0, now.count + 1.0), found)

    first = np.array(first)
    start = np.where(np.take(where, first) > 0.5, best.impulse, 0.0)
    last: _Attempt = while_loop(
        goes_on, step, _Attempt(start, np.take(begins, first) * scale, first, np.array(0.0), best), FOREVER
    )
    return last.best


def matrix_of(problem: Scaled, jacobians: list[Any], rho: Any = 0.0) -> Any:
    """I - D + D (G + ρ), and a little of I (m, m)."""
    layout, G, kept = problem.layout, problem.G, 1.0 - rho
    rows = []
    if layout.scalars:
        D, *jacobians = jacobians
        rows.append(D[:, None] * G[: layout.scalars] + np.diag(1.0 - kept * D) @ np.eye(layout.scalars, layout.m))
    rows += problem.by_contact(lambda G, D: D @ G, G, jacobians if not layout.large else np.stack(jacobians))
    matrix = np.concatenate(rows)
    for at, D in zip(layout.blocks, jacobians, strict=True):
        matrix[at, at] = matrix[at, at] + np.eye(len(D)) - kept * D
    return matrix + regularization() * np.eye(layout.m)
