"""Iterations on symmetric systems, compiled: conjugate gradients, and minimal residuals for indefinite ones.

Both are short recurrences on products A x. In exact arithmetic they end after as many iterations as A has different
eigenvalues; what is stiff and what is heavy spreads these, so systems come here in units of their own diagonal.

References: M. Hestenes, E. Stiefel (1952); C. Paige, M. Saunders, Solution of sparse indefinite systems of linear
equations (1975).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import while_loop
from delassus.contact.solvers.progress import FOREVER


class Iterated(NamedTuple):
    """x (n,), ‖b - A x‖ as a share of ‖b‖, and how many iterations were made."""

    x: Any
    residual: Any
    count: Any


def conjugate_gradients(apply: Callable[[Any], Any], b: Any, tolerance: Any, iterations: Any) -> Iterated:
    """x with A x = b for a positive definite A; `apply` gives A x."""
    size = _size(b)

    def step(carry: Any) -> Any:
        x, r, p, rr, count = carry
        Ap = apply(p)
        along = np.sum(p * Ap)
        length = rr / np.where(along > 0.0, along, 1.0)
        x, r = x + length * p, r - length * Ap
        new = np.sum(r * r)
        return x, r, r + new / rr * p, new, count + 1.0

    def goes_on(carry: Any) -> Any:
        return (np.sqrt(carry[3]) > tolerance * size) & (carry[4] < iterations)

    start = (np.zeros(len(b)), b, b, np.sum(b * b), np.array(0.0))
    x, _, _, rr, count = while_loop(goes_on, step, start, FOREVER)
    return Iterated(x, np.sqrt(rr) / size, count)


def minimal_residuals(apply: Callable[[Any], Any], b: Any, tolerance: Any, iterations: Any) -> Iterated:
    """x with A x = b for a symmetric A; `apply` gives A x."""
    n, size = len(b), _size(b)

    def step(carry: Any) -> Any:
        x, (v, v_before), (w, w_before), (c, c_before, s, s_before), beta, eta, count = carry
        p = apply(v)  # Lanczos: the next vector of the basis
        alpha = np.sum(v * p)
        p = p - alpha * v - beta * v_before
        further = np.sqrt(np.sum(p * p))
        delta = c * alpha - c_before * s * beta  # rotations that make the tridiagonal matrix triangular
        diagonal = np.sqrt(delta * delta + further * further)
        safe = np.where(diagonal > 0.0, diagonal, 1.0)
        new_w = (v - s_before * beta * w_before - (s * alpha + c_before * c * beta) * w) / safe
        c_new, s_new = delta / safe, further / safe
        x = x + c_new * eta * new_w
        v_new = p / np.where(further > 0.0, further, 1.0)
        return x, (v_new, v), (new_w, w), (c_new, c, s_new, s), further, -s_new * eta, count + 1.0

    def goes_on(carry: Any) -> Any:
        return (np.abs(carry[5]) > tolerance * size) & (carry[6] < iterations)

    none, one, zero = np.zeros(n), np.array(1.0), np.array(0.0)
    start = (none, (b / size, none), (none, none), (one, one, zero, zero), zero, np.sqrt(np.sum(b * b)), zero)
    x, *_, eta, count = while_loop(goes_on, step, start, FOREVER)
    return Iterated(x, np.abs(eta) / size, count)


def _size(b: Any) -> Any:
    size = np.sqrt(np.sum(b * b))
    return np.where(size > 0.0, size, 1.0)
