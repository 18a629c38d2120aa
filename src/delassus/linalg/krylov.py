"""Krylov methods for symmetric systems: conjugate gradients, and minimal residuals for indefinite ones.

Both are short recurrences on products A x, on traced or NumPy arrays; A may be a matrix, sparse, or a function. In
exact arithmetic they end after as many iterations as A has different eigenvalues. Stiff and heavy parts spread the
eigenvalues, so callers scale systems by the diagonal, which acts as a diagonal preconditioner.

Recurrences lose accuracy by rounding, so the returned residual is r = b - A x itself, and iterations restart from x if
the recurrence was too optimistic. If A is singular and b outside its range, A r vanishes before r: minimal residuals
end there with the smallest residual, or return x where A r was smallest. Conjugate gradients diverge, and return the
best iterate.

References: M. Hestenes, E. Stiefel (1952); C. Paige, M. Saunders, Solution of sparse indefinite systems of linear
equations (1975); S.-C. Choi, C. Paige, M. Saunders, MINRES-QLP (2011), for singular systems.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import UNBOUNDED, while_loop
from delassus.compiler.tracing.trace import computing_in

_STARTS: Final = 4
"""Maximum number of restarts, including the first start."""

_VANISHES: Final = 1e-5
"""‖A r‖/‖r‖, relative to ‖A b‖/‖b‖, below which the residual is minimal."""


class KrylovSolution(NamedTuple):
    """x (n,), r = b - A x (n,), ‖r‖/‖b‖, iterations, and whether A r vanishes, so that the residual is minimal."""

    x: Any
    left: Any
    residual: Any
    count: Any
    stalled: Any


Apply = Callable[[Any], Any]


def conjugate_gradients(
    apply: Apply, b: Any, tolerance: Any, iterations: Any, start: Any = None, error: Apply | None = None
) -> KrylovSolution:
    """Solve A x = b (n,) for a positive definite A.

    Args:
        apply: A x (n,), from x (n,).
        b: (n,) right-hand side.
        tolerance: The error at which iterations end.
        iterations: Maximum number of iterations.
        start: (n,) initial x, or None for zero.
        error: Maps a residual r (n,) to its error; ‖r‖/‖b‖ if None.
    """
    size = _size(b)

    def improve(r: Any, count: Any) -> tuple[Any, Any]:
        def step(carry: Any) -> Any:
            x, r, p, rr, count, best, least, _ = carry
            Ap = apply(p)
            curvature, steepest = np.sum(p * Ap), np.sqrt(np.sum(p * p) * np.sum(Ap * Ap))
            flat = curvature <= 1e-3 * _flat() * steepest
            length = np.where(flat, 0.0, rr / np.where(flat, 1.0, curvature))
            x, r = x + length * p, r - length * Ap
            new = np.sum(r * r)
            better = new < least
            best, least = np.where(better, x, best), np.where(better, new, least)
            improves = ~flat & np.isfinite(new) & (new < 1e10 * least)
            return x, r, r + new / rr * p, new, count + 1.0, best, least, improves

        def should_continue(carry: Any) -> Any:
            unmet = np.sqrt(carry[3]) > tolerance * size if error is None else error(carry[1]) > tolerance
            return unmet & (carry[4] < iterations) & carry[7]

        rr = np.sum(r * r)
        first = (np.zeros(len(r)), r, r, rr, count, np.zeros(len(r)), rr, np.array(True))
        last = while_loop(should_continue, step, first, UNBOUNDED)
        return last[5], last[4]

    return _restart(improve, apply, b, tolerance, iterations, start, error)


def minimal_residuals(apply: Apply, b: Any, tolerance: Any, iterations: Any, start: Any = None) -> KrylovSolution:
    """Solve A x = b (n,) for a symmetric A, or minimize |A x - b|; arguments as for `conjugate_gradients`."""
    n, size = len(b), _size(b)

    def improve(r: Any, count: Any) -> tuple[Any, Any]:
        def step(carry: Any) -> Any:
            x, (v, v_before), (w, w_before), (c, c_before, s, s_before), beta, eta, count, (norm, flattest), best = (
                carry
            )
            p = apply(v)  # Lanczos: the next vector of the basis
            alpha = np.sum(v * p)
            p = p - alpha * v - beta * v_before
            further = np.sqrt(np.sum(p * p))
            delta = c * alpha - c_before * s * beta  # Givens rotations of the tridiagonal matrix
            diagonal = np.sqrt(delta * delta + further * further)
            norm = np.maximum(norm, np.sqrt(alpha * alpha + beta * beta + further * further))
            best = np.where(diagonal < flattest * norm, x, best)  # ‖A r‖ = ‖r‖ diagonal, r the current residual
            flattest = np.minimum(flattest, diagonal / norm)
            safe = np.where(diagonal > 0.0, diagonal, 1.0)
            new_w = (v - s_before * beta * w_before - (s * alpha + c_before * c * beta) * w) / safe
            c_new, s_new = delta / safe, further / safe
            v_new = p / np.where(further > 0.0, further, 1.0)
            turns = (c_new, c, s_new, s)
            x, eta, count = x + c_new * eta * new_w, -s_new * eta, count + 1.0
            return x, (v_new, v), (new_w, w), turns, further, eta, count, (norm, flattest), best

        def should_continue(carry: Any) -> Any:
            flat = carry[7][1] <= _flat()
            return (np.abs(carry[5]) > tolerance * size) & (carry[6] < iterations) & ~flat

        none, one, zero, length = np.zeros(n), np.array(1.0), np.array(0.0), np.sqrt(np.sum(r * r))
        basis = (r / np.where(length > 0.0, length, 1.0), none)
        first = (none, basis, (none, none), (one, one, zero, zero), zero, length, count, (zero, one), none)
        x, _, _, _, _, _, count, _, best = while_loop(should_continue, step, first, UNBOUNDED)
        residual_square, best_square = (np.sum((r - apply(y)) ** 2) for y in (x, best))
        # After the minimum of ‖A r‖, x grows along the null space of A.
        return np.where(residual_square < (1.0 - 1e-6) * best_square, x, best), count

    return _restart(improve, apply, b, tolerance, iterations, start)


def _restart(
    improve: Any, apply: Apply, b: Any, tolerance: Any, iterations: Any, start: Any, error: Apply | None = None
) -> KrylovSolution:
    """x (n,) from corrections for the residual, each by a new recurrence, as long as they reduce it."""
    size = _size(b)

    def again(carry: Any) -> Any:
        x, left, count, _ = carry
        change, count = improve(left, count)
        new = b - apply(x + change)
        before, now = np.sum(left * left), np.sum(new * new)
        better = now < before
        unmet = np.sqrt(now) > tolerance * size if error is None else error(new) > tolerance
        more = (now < 0.25 * before) & unmet & (count < iterations)
        return np.where(better, x + change, x), np.where(better, new, left), count, more

    x = np.where(np.isfinite(b), 0.0, np.nan) if start is None else start
    first = (x, b if start is None else b - apply(start), np.array(0.0), np.array(True))
    x, left, count, _ = while_loop(lambda carry: carry[3], again, first, _STARTS)
    steep, flat = (np.sqrt(np.sum(apply(y) ** 2)) for y in (b, left))
    length = np.sqrt(np.sum(left * left))
    return KrylovSolution(x, left, length / size, count, flat * size <= _VANISHES * steep * length)


def _flat() -> float:
    """Directions with a smaller A x, relative to the norm of A, count as its null space."""
    return 1e-8 if computing_in().name == "float64" else 1e-4


def _size(b: Any) -> Any:
    size = np.sqrt(np.sum(b * b))
    return np.where(size > 0.0, size, 1.0)
