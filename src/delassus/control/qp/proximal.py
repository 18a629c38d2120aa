"""The proximal method of multipliers, with Newton steps on its piecewise smooth inner problems.

Around x̄ and the multipliers y, z it minimizes

    φ(x) = ½ xᵀ H x + gᵀ x + ρ/2 ‖x - x̄‖² + 1/(2ε) ‖A x - b + ε y‖² + 1/(2ε) dist²(R x + r + ε z, allowed)

by Newton's method: the Hessian is H + ρ + Aᵀ A/ε + Rᵀ D R/ε, with D = 1 for the rows at a bound, 0 for others and the
slopes of the projection for cones; an exact line search minimizes φ along the step. When φ is nearly minimal, y and z
are replaced by the multipliers of the augmented Lagrangian, x̄ by x, and ε shrinks unless the error of the rows
decreased.

One Newton step costs n³/6 multiplications plus those for the active rows. An initial guess with the right active set
needs two or three of them, whatever the scaling; ρ and ε handle singular H and redundant rows. For infeasible rows, x
converges to the least-squares solution of the scaled rows, while y and z grow without bound: iterations end when x̄ no
longer changes.

References: R. T. Rockafellar, Augmented Lagrangians and applications of the proximal point algorithm (1976);
A. Bambade, S. El-Kazdadi, A. Taylor, J. Carpentier, PROX-QP (2022); A. Chiche, J. C. Gilbert, How the augmented
Lagrangian algorithm can deal with an infeasible convex quadratic optimization problem (2016).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import while_loop
from delassus.compiler.tracing.trace import trace_of
from delassus.control.qp.iterate import RESTED, Iterate, Pushes, rho_of, update_errors
from delassus.control.qp.scaled import Scaled, largest, product
from delassus.linalg.cholesky import Cholesky
from delassus.linalg.products import gram

EPSILON: Final = (1e-5, 1e-1)
"""Initial ε with cones: along a curved boundary, a stiff penalty would shorten Newton steps."""

SHRINKS: Final = 0.1
LEAST_EPSILON: Final = 1e-6
"""Factor of decrease of ε, and its minimum."""

INNER: Final = 0.1
"""φ is nearly minimal if its gradient is below this fraction of the residual of the rows."""

RESTS: Final = 1e-10
"""x̄ has converged if its relative change is below this."""

FURTHER: Final = (0.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6)
"""Factor of extrapolation of multipliers each time that x̄ has not changed."""

LARGE: Final = 1e6
"""Longest step of multipliers; longer multipliers are also not used as a start."""

MOST_CUTS: Final = 24
"""Maximum number of evaluations in a line search."""

FOREVER: Final = 1_000


def solve_scaled(p: Scaled, x: Any, y: Any, z: Any, tolerance: Any, iterations: Any) -> Iterate:
    """Solve from an initial guess (scaled), until errors are below the tolerance or the iterate is constant."""
    n = p.shape.n
    fixed = gram(p.A, p.A) if p.shape.equalities else np.zeros((n, n))
    zero, infinite, epsilon = np.array(0.0), np.array(1e30), np.array(EPSILON[bool(p.shape.cones)])
    Hx, Ax, Rx = product(p.H, x), product(p.A, x), product(p.R, x) + p.offset
    pushes = Pushes.of(p, Ax, Rx, y, z, epsilon)
    unknown = (np.zeros(n), infinite, infinite, infinite, zero, infinite, zero)
    first = update_errors(p, Iterate(x, x, Hx, Ax, Rx, pushes, epsilon, infinite, zero, zero, *unknown))

    def goes_on(now: Iterate) -> Any:
        return ~now.is_within(tolerance) & (now.count < iterations) & (now.resting < RESTED - 0.5)

    last: Iterate = while_loop(goes_on, lambda now: newton_step(p, fixed, now, tolerance), first, FOREVER)
    return last


def newton_step(p: Scaled, fixed: Any, now: Iterate, tolerance: Any) -> Iterate:
    """Update the multipliers where φ is nearly minimal, then make a Newton step."""
    now = multipliers_step(p, now, tolerance)
    pushes, inverse = now.pushes, 1.0 / now.epsilon
    d = -Cholesky(hessian(p, fixed, pushes, inverse)).solve(now.gradient)
    Hd, Ad, Rd = product(p.H, d), product(p.A, d), product(p.R, d)
    t = _length(p, now, d, Hd, Ad, inverse * Rd)
    updated = now._replace(
        x=now.x + t * d,
        Hx=now.Hx + t * Hd,
        Ax=now.Ax + t * Ad,
        Rx=now.Rx + t * Rd,
        pushes=pushes.along(p, t * inverse * Ad, t * inverse * Rd),
        count=now.count + 1.0,
    )
    return update_errors(p, updated)


def multipliers_step(p: Scaled, now: Iterate, tolerance: Any) -> Iterate:
    """Update multipliers, x̄ and ε where φ is nearly minimal; change nothing elsewhere."""
    least = largest(now.gradient) <= np.maximum(INNER * now.apart, 0.3 * tolerance * now.high)
    has_converged = largest(now.x - now.center) <= RESTS * (largest(now.x) + now.wide)
    slower = now.apart > SHRINKS * now.last
    epsilon = np.where(slower, np.maximum(SHRINKS * now.epsilon, LEAST_EPSILON), now.epsilon)
    y, z = now.multipliers(p)
    # When x̄ has converged, multipliers only grow along the residual of the rows, so extrapolate tenfold each time.
    violation = largest(now.Ax - p.b, p.excess(now.Rx))
    further = np.take(np.array(FURTHER), now.resting) / now.epsilon
    further = np.minimum(further, LARGE / np.where(violation > 0.0, violation, 1.0))
    y, z = y + further * (now.Ax - p.b), z + further * p.excess(now.Rx)
    penalties = Pushes.of(p, now.Ax, now.Rx, y, z, epsilon)
    after = now._replace(
        center=np.where(least, now.x, now.center),
        pushes=Pushes(*(np.where(least, new, old) for new, old in zip(penalties, now.pushes, strict=True))),
        epsilon=np.where(least, epsilon, now.epsilon),
        last=np.where(least, now.apart, now.last),
        resting=np.where(least, np.where(has_converged, now.resting + 1.0, 0.0), now.resting),
    )
    return update_errors(p, after)


def hessian(p: Scaled, fixed: Any, pushes: Pushes, inverse: Any) -> Any:
    """The lower triangle of the Hessian of φ; expensive rows are skipped if none of them is at a bound."""
    n, m = p.shape.n, p.shape.rows
    K = fixed
    if m:
        at_bound = np.where((pushes.high > 0.0) | (pushes.low < 0.0), 1.0, 0.0)
        filled = [_count_nonzeros(p.R[r]) for r in range(m)]
        is_dense = sum(k * k for k in filled) > n**3 // 3
        long = [r for r in range(m) if is_dense and filled[r] > n // 3]
        short = [r for r in range(m) if r not in long]
        if short:
            K = K + gram(at_bound[short][:, None] * p.R[short], p.R[short])
        if long:
            rows, active = p.R[long], at_bound[long]
            K = cond(np.max(active) > 0.5, lambda K: K + gram(active[:, None] * rows, rows), K, K)
    for rows, D in p.cone_slopes(pushes.cone):
        K = K + gram(D @ rows, rows)
    return p.H + rho_of(p) * np.eye(n) + K * inverse


def _count_nonzeros(row: Any) -> int:
    """The number of entries of a row that are not structural zeros."""
    return len(row) if trace_of(row) is None else sum(1 for x in row.ids.ravel() if x != 0)


class _Bracket(NamedTuple):
    """A step length t with the slope of φ, and the bracket of the minimum with the slopes at its ends.

    `bounded` tells whether `high` has been evaluated.
    """

    t: Any
    slope: Any
    low: Any
    below: Any
    high: Any
    above: Any
    bounded: Any
    count: Any


def _length(p: Scaled, now: Iterate, d: Any, Hd: Any, Ad: Any, Rd: Any) -> Any:
    """The step length along d that minimizes φ: the root of its increasing slope, by false position.

    Rd is already divided by ε.
    """
    if not len(p.row):
        return np.array(1.0)
    pushes, nothing = now.pushes, np.zeros(p.shape.equalities)
    straight = d @ (now.Hx + p.g + rho_of(p) * (now.x - now.center)) + _dot(Ad, pushes.equal)
    curvature = d @ Hd + rho_of(p) * (d @ d) + _dot(Ad, Ad) / now.epsilon

    def slope(t: Any) -> Any:
        rows = pushes.along(p, nothing, t * Rd).rows(p)
        return straight + t * curvature + now.epsilon * (Rd @ rows)

    first, full_step = slope(0.0), slope(1.0)
    target = 0.1 * np.abs(first)

    # φ' is negative at `low` and positive at `high`, or `high` has not been evaluated.
    def goes_on(last: _Bracket) -> Any:
        return (np.abs(last.slope) > target) & (last.count < float(MOST_CUTS))

    def shrink_bracket(last: _Bracket) -> _Bracket:
        t, value, low, below, high, above, bounded, count = last
        negative = value < 0.0
        low, below = np.where(negative, t, low), np.where(negative, value, below)
        high, above = np.where(negative, high, t), np.where(negative, above, value)
        bounded = bounded | ~negative
        share = np.clip(-below / np.where(above > below, above - below, 1.0), 0.05, 0.95)
        t = np.where(bounded, low + share * (high - low), 2.0 * t)
        return _Bracket(t, slope(t), low, below, high, above, bounded, count + 1.0)

    one, zero = np.array(1.0), np.array(0.0)
    return while_loop(
        goes_on, shrink_bracket, _Bracket(one, full_step, zero, first, one, full_step, np.array(False), zero), MOST_CUTS
    ).t


def _dot(a: Any, b: Any) -> Any:
    return a @ b if len(a) else np.array(0.0)
