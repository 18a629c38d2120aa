"""Iterations on symmetric systems, compiled: conjugate gradients, and minimal residuals for indefinite ones.

Both are short recurrences on products A x. In exact arithmetic they end after as many iterations as A has different
eigenvalues; what is stiff and what is heavy spreads these, so systems come here in units of their own diagonal.

Recurrences forget what rounding does, so the residual that is returned is r = b - A x itself, and iterations begin anew
from x where the recurrence was too sure of itself. Where A is singular and no x reaches b, A r vanishes before r does:
minimal residuals end there, with the least residual that there is, or take x back to where A r was least. Conjugate
gradients diverge, and end with the best x that they have met.

References: M. Hestenes, E. Stiefel (1952); C. Paige, M. Saunders, Solution of sparse indefinite systems of linear
equations (1975); S.-C. Choi, C. Paige, M. Saunders, MINRES-QLP (2011), for singular systems.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import while_loop
from delassus.compiler.tracing.trace import computing_in
from delassus.contact.solvers.progress import FOREVER

_STARTS: Final = 4
"""How often iterations begin, at most."""

_VANISHES: Final = 1e-5
"""‖A r‖/‖r‖, as a share of ‖A b‖/‖b‖, at which no x comes nearer to b."""


class Iterated(NamedTuple):
    """x (n,), r = b - A x (n,), ‖r‖/‖b‖, iterations, and whether A r vanishes: no x comes nearer to b."""

    x: Any
    left: Any
    residual: Any
    count: Any
    stalled: Any


Apply = Callable[[Any], Any]


class _Conjugate(NamedTuple):
    """x, its residual r, the direction p, r², the iterations made, the best x and its r², and whether it goes on."""

    x: Any
    r: Any
    p: Any
    rr: Any
    count: Any
    best: Any
    least: Any
    more: Any


class _Lanczos(NamedTuple):
    """Where minimal residuals are.

    Attributes:
        x, best: (n,) the solution so far, and the one where A is steepest against the residual.
        basis, directions: The last two vectors (n,) of the basis, and of what x is made of.
        turns: Cosines and sines of the last two rotations.
        beta, eta: The last number beside the diagonal, and the residual's length but for its sign.
        count: Iterations made.
        norm, flattest: The largest column of the tridiagonal matrix, and the least diagonal as a share of it.
    """

    x: Any
    basis: tuple[Any, Any]
    directions: tuple[Any, Any]
    turns: tuple[Any, Any, Any, Any]
    beta: Any
    eta: Any
    count: Any
    norm: Any
    flattest: Any
    best: Any


def conjugate_gradients(apply: Apply, b: Any, tolerance: Any, iterations: Any) -> Iterated:
    """x with A x = b for a positive definite A; `apply` gives A x."""
    size = _size(b)

    def improve(r: Any, count: Any) -> tuple[Any, Any]:
        def step(now: _Conjugate) -> _Conjugate:
            x, r, p, rr, count, best, least, _ = now
            Ap = apply(p)
            along, steepest = np.sum(p * Ap), np.sqrt(np.sum(p * p) * np.sum(Ap * Ap))
            flat = along <= 1e-3 * _flat() * steepest
            length = np.where(flat, 0.0, rr / np.where(flat, 1.0, along))
            x, r = x + length * p, r - length * Ap
            new = np.sum(r * r)
            better = new < least
            best, least = np.where(better, x, best), np.where(better, new, least)
            more = ~flat & np.isfinite(new) & (new < 1e4 * least)
            return _Conjugate(x, r, r + new / rr * p, new, count + 1.0, best, least, more)

        def should_continue(now: _Conjugate) -> Any:
            return (np.sqrt(now.rr) > tolerance * size) & (now.count < iterations) & now.more

        rr = np.sum(r * r)
        start = _Conjugate(np.zeros(len(r)), r, r, rr, count, np.zeros(len(r)), rr, np.array(True))
        last: _Conjugate = while_loop(should_continue, step, start, FOREVER)
        return last.best, last.count

    return _restarted(improve, apply, b, tolerance, iterations)


def minimal_residuals(apply: Apply, b: Any, tolerance: Any, iterations: Any) -> Iterated:
    """x with A x = b for a symmetric A, or the one that comes nearest; `apply` gives A x."""
    n, size = len(b), _size(b)

    def improve(r: Any, count: Any) -> tuple[Any, Any]:
        def step(now: _Lanczos) -> _Lanczos:
            x, beta, eta, count, norm, flattest, best = (
                now.x,
                now.beta,
                now.eta,
                now.count,
                now.norm,
                now.flattest,
                now.best,
            )
            (v, v_before), (w, w_before), (c, c_before, s, s_before) = now.basis, now.directions, now.turns
            p = apply(v)  # Lanczos: the next vector of the basis
            alpha = np.sum(v * p)
            p = p - alpha * v - beta * v_before
            further = np.sqrt(np.sum(p * p))
            delta = c * alpha - c_before * s * beta  # rotations that make the tridiagonal matrix triangular
            diagonal = np.sqrt(delta * delta + further * further)
            norm = np.maximum(norm, np.sqrt(alpha * alpha + beta * beta + further * further))
            best = np.where(diagonal < flattest * norm, x, best)  # ‖A r‖ = ‖r‖ diagonal, r the residual so far
            flattest = np.minimum(flattest, diagonal / norm)
            safe = np.where(diagonal > 0.0, diagonal, 1.0)
            new_w = (v - s_before * beta * w_before - (s * alpha + c_before * c * beta) * w) / safe
            c_new, s_new = delta / safe, further / safe
            v_new = p / np.where(further > 0.0, further, 1.0)
            turns = (c_new, c, s_new, s)
            x, eta, count = x + c_new * eta * new_w, -s_new * eta, count + 1.0
            return _Lanczos(x, (v_new, v), (new_w, w), turns, further, eta, count, norm, flattest, best)

        def should_continue(now: _Lanczos) -> Any:
            flat = now.flattest <= _flat()
            return (np.abs(now.eta) > tolerance * size) & (now.count < iterations) & ~flat

        none, one, zero, length = np.zeros(n), np.array(1.0), np.array(0.0), np.sqrt(np.sum(r * r))
        basis = (r / np.where(length > 0.0, length, 1.0), none)
        start = _Lanczos(none, basis, (none, none), (one, one, zero, zero), zero, length, count, zero, one, none)
        last: _Lanczos = while_loop(should_continue, step, start, FOREVER)
        left, left_best = (np.sum((r - apply(y)) ** 2) for y in (last.x, last.best))
        # Beyond the flattest place, x grows in directions that A does not see.
        return np.where(left < (1.0 - 1e-6) * left_best, last.x, last.best), last.count

    return _restarted(improve, apply, b, tolerance, iterations)


def _restarted(improve: Any, apply: Apply, b: Any, tolerance: Any, iterations: Any) -> Iterated:
    """x (n,) from corrections for what is left of b (n,), each with a recurrence of its own, as long as they help."""
    size = _size(b)

    def again(carry: Any) -> Any:
        x, left, count, _ = carry
        change, count = improve(left, count)
        new = b - apply(x + change)
        before, now = np.sum(left * left), np.sum(new * new)
        better = now < before
        more = (now < 0.25 * before) & (np.sqrt(now) > tolerance * size) & (count < iterations)
        return np.where(better, x + change, x), np.where(better, new, left), count, more

    start = (np.where(np.isfinite(b), 0.0, np.nan), b, np.array(0.0), np.array(True))
    x, left, count, _ = while_loop(lambda carry: carry[3], again, start, _STARTS)
    steep, flat = (np.sqrt(np.sum(apply(y) ** 2)) for y in (b, left))
    length = np.sqrt(np.sum(left * left))
    return Iterated(x, left, length / size, count, flat * size <= _VANISHES * steep * length)


def _flat() -> float:
    """Directions in which A is smaller, as a share of its norm, are those in which it is singular."""
    return 1e-8 if computing_in().name == "float64" else 1e-4


def _size(b: Any) -> Any:
    size = np.sqrt(np.sum(b * b))
    return np.where(size > 0.0, size, 1.0)
