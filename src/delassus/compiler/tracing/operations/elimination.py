"""Elimination on traced matrices: Cholesky factors and solutions of linear equations.

Small matrices are eliminated by straight-line code, where exact zeros cost nothing. Large ones, whose code would be
long, are eliminated in loops: one step is made on the first row and column, and the matrix is moved up and left, so
that every step is the same code. As the matrix does not shrink in the loop, that takes three times the arithmetic;
many right-hand sides are solved one by one in a loop at no loss.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from delassus.compiler.tracing.array import Array
from delassus.compiler.tracing.flow import control
from delassus.compiler.tracing.handlers import HANDLERS

LARGEST_FACTOR: Final = 30_000
"""Operations of an elimination that are written out."""

LARGEST_SUBSTITUTION: Final = 3_000
"""Operations of substitutions that are written out; right-hand sides beyond that take turns in a loop."""


def _zeros(like: Array, *shape: int) -> Array:
    return like.origin.lift(np.zeros(shape))


# --- positive definite matrices -------------------------------------------------------------------------------------


def cholesky(A: Array) -> Array:
    """The lower triangular L with L Lᵀ = A; reads the lower triangle."""
    n = len(A)
    if n**3 // 6 > LARGEST_FACTOR:
        unit, inverse = _factor_positive(A)
        root: Array = unit * HANDLERS[np.sqrt](1.0 / inverse)
        return root
    L = _zeros(A, n, n)
    for j in range(n):
        pivot = A[j, j]
        for k in range(j):
            pivot = pivot - L[j, k] * L[j, k]
        L[j, j] = HANDLERS[np.sqrt](pivot)
        inverse = 1.0 / L[j, j]
        for i in range(j + 1, n):
            total = A[i, j]
            for k in range(j):
                total = total - L[i, k] * L[j, k]
            L[i, j] = total * inverse
    return L


def solve_positive(A: Array, B: Array) -> Array:
    """L D Lᵀ X = B, without square roots; reads the lower triangle of A."""
    L, inverse = _factor_positive(A)
    n = len(A)

    def substitute(B: Array) -> Array:
        X = B.copy()
        for j in range(n):
            for i in range(j + 1, n):
                X[i] = X[i] - L[i, j] * X[j]
        for i in reversed(range(n)):
            X[i] = X[i] * inverse[i]
            for k in range(i + 1, n):
                X[i] = X[i] - L[k, i] * X[k]
        return X

    return _by_columns(substitute, B, n * n)


def _factor_positive(A: Array) -> tuple[Array, Array]:
    """The unit lower triangular L and 1 / D with L D Lᵀ = A."""
    n = len(A)
    if n**3 // 6 > LARGEST_FACTOR:
        return _factor_positive_rolled(A)
    L, inverse = A.copy(), _zeros(A, n)
    eliminate_symmetric(L, inverse)
    return _unit_lower(L), inverse


def _invert(_: int, pivot: Any) -> Any:
    return 1.0 / pivot


def eliminate_symmetric(A: Any, inverse: Any, invert: Callable[[int, Any], Any] = _invert) -> None:
    """Overwrite a matrix A = L D Lᵀ (n, n) by L, below its diagonal of ones, and `inverse` (n,) by 1 / D.

    Reads the lower triangle; n³/6 multiplications. Arrays are traced or NumPy's. `invert` gives the inverse of a pivot
    by its number and value: the place to leave out pivots that vanish.
    """
    n = len(A)
    for j in range(n):
        inverse[j] = invert(j, A[j, j])
        below = A[j + 1 :, j].copy()
        A[j + 1 :, j] = below * inverse[j]
        for i in range(j + 1, n):
            A[i, j + 1 : i + 1] = A[i, j + 1 : i + 1] - A[i, j] * below[: i - j]


def _unit_lower(L: Array) -> Array:
    lower: Array = HANDLERS[np.tril](L, -1)
    unit: Array = lower + np.eye(len(L))
    return unit


def _factor_positive_rolled(A: Array) -> tuple[Array, Array]:
    n, triangle = len(A), np.tril_indices(len(A))

    def step(lower: Array, _: Any) -> tuple[Array, tuple[Array, Array]]:
        M, moved = _zeros(lower, n, n), _zeros(lower, n, n)
        M[triangle] = lower
        inverse = 1.0 / M[0, 0]
        factors = M[1:, 0] * inverse
        moved[:-1, :-1] = M[1:, 1:] - factors[:, None] * M[1:, 0]
        return moved[triangle], (factors, inverse)

    _, (factors, inverse) = control.scan(step, A[triangle], length=n)
    L = _zeros(A, n, n)
    for k in range(n):
        L[k + 1 :, k] = factors[k][: n - 1 - k]
    return _unit_lower(L), inverse


# --- any matrix -----------------------------------------------------------------------------------------------------


def solve_general(A: Array, B: Array) -> Array:
    """A X = B by elimination with partial pivoting, the pivot chosen by every state for itself."""
    n, rolled = len(A), len(A) ** 3 > LARGEST_FACTOR
    U, Y, _ = (_eliminate_rolled if rolled else _eliminate)(A, B)
    if not rolled:
        X = Y.copy()
        for i in reversed(range(n)):
            for k in range(i + 1, n):
                X[i] = X[i] - U[i, k] * X[k]
            X[i] = X[i] * (1.0 / U[i, i])
        return X

    def step(solved: Array, rows: tuple[Array, Array]) -> tuple[Array, Array]:
        """A row of U starts at its pivot, and `solved` with the unknown after it."""
        u, y = rows
        x = y
        for k in range(n - 1):
            x = x - u[k + 1] * solved[k]
        x = x * (1.0 / u[0])
        return HANDLERS[np.concatenate]([x[None], solved[:-1]]), x

    moved = _zeros(U, n, n)
    for i in range(n):
        moved[i, : n - i] = U[i, i:]
    _, X = control.scan(step, _zeros(Y, *Y.shape), (moved, Y), reverse=True)
    solution: Array = X
    return solution


def pivots(A: Array) -> tuple[Array, Array]:
    """The pivots of an elimination, and whether the number of row exchanges is odd.

    A column without a pivot (all zero, so that nothing is to be eliminated) is left as it is.
    """
    eliminate = _eliminate_rolled if len(A) ** 3 > LARGEST_FACTOR else _eliminate
    U, _, odd = eliminate(A, _zeros(A, len(A), 0), singular=True)
    return U[np.arange(len(A)), np.arange(len(A))], odd


def _eliminate(A: Array, B: Array, singular: bool = False) -> tuple[Array, Array, Array]:
    """Upper triangular U with what becomes of B, and whether the number of row exchanges is odd."""
    n, U, Y, odd = len(A), A.copy(), B.copy(), A.origin.lift(False)
    for j in range(n):
        odd = odd ^ _eliminate_first(U[j:, j:], Y[j:], singular)
    return U, Y, odd


def _eliminate_rolled(A: Array, B: Array, singular: bool = False) -> tuple[Array, Array, Array]:
    n = len(A)

    def step(carry: tuple[Array, Array, Array], _: Any) -> tuple[Any, Any]:
        U, Y, odd = (x.copy() for x in carry)
        odd = odd ^ _eliminate_first(U, Y, singular)
        first = (U[0].copy(), Y[0].copy())
        U[:-1, :-1], Y[:-1] = U[1:, 1:].copy(), Y[1:].copy()
        U[-1], U[:, -1], Y[-1] = 0.0, 0.0, 0.0
        return (U, Y, odd), first

    (_, _, odd), (rows, Y) = control.scan(step, (A, B, A.origin.lift(False)), length=n)
    U = _zeros(A, n, n)
    for k in range(n):
        U[k, k:] = rows[k][: n - k]
    return U, Y, odd


def _eliminate_first(U: Array, Y: Array, singular: bool) -> Array:
    """Bring the largest element of the first column up and make those below zero, in place; the exchanges made."""
    absolute, where = HANDLERS[np.absolute], HANDLERS[np.where]
    odd = U.origin.lift(False)
    for i in range(1, len(U)):
        swap = absolute(U[i, 0]) > absolute(U[0, 0])
        odd = odd ^ swap
        for M in (U, Y):
            upper, lower = M[0].copy(), M[i].copy()
            M[0], M[i] = where(swap, lower, upper), where(swap, upper, lower)
    inverse = 1.0 / U[0, 0]
    if singular:
        inverse = where(U[0, 0] == 0.0, 0.0, inverse)
    for i in range(1, len(U)):
        factor = U[i, 0] * inverse
        U[i, 1:] = U[i, 1:] - factor * U[0, 1:]
        Y[i] = Y[i] - factor * Y[0]
        U[i, 0] = 0.0
    return odd


def _by_columns(solve: Callable[[Array], Array], B: Array, operations: int) -> Array:
    """Solutions for the columns of B, which take so many operations each: all at once, or in a loop."""
    if operations * B.shape[1] <= LARGEST_SUBSTITUTION or B.shape[1] == 1:
        return solve(B)
    solutions: Array = control.map(lambda column: solve(column[:, None])[:, 0], B.T)
    return solutions.T
