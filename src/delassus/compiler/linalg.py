"""Small dense algebra on traced matrices, unrolled.

A compiled kernel cannot raise for one state of a batch, so where NumPy raises `LinAlgError` (a singular matrix,
a matrix that is not positive definite) these give inf or NaN in that state alone.
"""

import math
from typing import Any

import numpy as np

from delassus.compiler.array import Array
from delassus.compiler.handlers import HANDLERS, handles
from delassus.compiler.lifting import floats


def _square(name: str, a: Array) -> int:
    """The size of a (stack of) square matrices."""
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"linalg.{name}: a square matrix is needed, got shape {a.shape}.")
    return a.shape[-1]


def _stacked(*arrays: Array) -> bool:
    return any(a.ndim > 2 for a in arrays)


@handles(np.linalg.cholesky)
def cholesky(a: Any, *, upper: bool = False) -> Array:
    """The lower triangular L with L Lᵀ = A, or with `upper` U = Lᵀ; reads that triangle. n³/3 operations."""
    (A,) = floats(a)
    n = _square("cholesky", A)
    if upper:
        return cholesky(A.mT).mT.copy()
    if _stacked(A):
        return _each(cholesky, A)
    L: Array = HANDLERS[np.zeros_like](A)
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


@handles(np.linalg.solve)
def solve(a: Any, b: Any, *, assume_a: str = "gen") -> Array:
    """x with A x = b, for one or several right-hand sides.

    `assume_a="gen"`: Gaussian elimination with partial pivoting, the pivot chosen by every state for itself.
    `assume_a="pos"` (positive definite): L D Lᵀ without square roots, half the operations and no choices.
    """
    A, B = floats(a, b)
    n = _square("solve", A)
    # NumPy 2's rule: b is a vector only if it has exactly one axis.
    rows = B.shape[0] if B.ndim == 1 else B.shape[-2]
    if rows != n:
        raise ValueError(f"linalg.solve: a matrix of shape {A.shape} does not fit a right-hand side {B.shape}.")
    if B.ndim == 1 and A.ndim > 2:
        return _each(lambda m: solve(m, B, assume_a=assume_a), A)
    if _stacked(A, B):
        return _each(lambda m, r: solve(m, r, assume_a=assume_a), A, B)
    if assume_a not in _ELIMINATIONS:
        raise ValueError(f"linalg.solve: assume_a is 'gen' or 'pos', not {assume_a!r}.")
    X = _ELIMINATIONS[assume_a](A.copy(), B.copy() if B.ndim == 2 else B[:, None].copy())
    return X.reshape(B.shape)


@handles(np.linalg.inv)
def inv(a: Any, *, assume_a: str = "gen") -> Array:
    """A⁻¹, by solving against the identity; `assume_a` as for `solve`."""
    (A,) = floats(a)
    identity = A.origin.lift(np.eye(_square("inv", A)))
    if _stacked(A):
        return _each(lambda m: solve(m, identity, assume_a=assume_a), A)
    return solve(A, identity, assume_a=assume_a)


@handles(np.linalg.det)
def det(a: Any) -> Array:
    """The determinant, by elimination with partial pivoting."""
    (A,) = floats(a)
    n = _square("det", A)
    if _stacked(A):
        return _each(det, A)
    U, nothing = A.copy(), A.origin.lift(np.zeros((n, 0)))
    swaps = _eliminate(U, nothing, singular=True)
    result = A.origin.lift(1.0)
    for i in range(n):
        result = result * U[i, i]
    odd = A.origin.lift(False)
    for swap in swaps:
        odd = odd ^ swap
    signed: Array = HANDLERS[np.where](odd, -result, result)
    return signed


def _solve_general(A: Array, B: Array) -> Array:
    _eliminate(A, B)
    n = len(A)
    for i in reversed(range(n)):
        for k in range(i + 1, n):
            B[i] = B[i] - A[i, k] * B[k]
        B[i] = B[i] * (1.0 / A[i, i])
    return B


def _eliminate(A: Array, B: Array, singular: bool = False) -> list[Array]:
    """Reduce A to upper triangular form in place, B along with it; returns the row exchanges made.

    With `singular`, a column without a pivot (all zero, so that nothing is to be eliminated) is left as it is.
    """
    n = len(A)
    absolute, where = HANDLERS[np.absolute], HANDLERS[np.where]
    swaps = []
    for j in range(n):
        for i in range(j + 1, n):
            swap = absolute(A[i, j]) > absolute(A[j, j])
            swaps.append(swap)
            for M, start in ((A, j), (B, 0)):
                upper, lower = M[j, start:].copy(), M[i, start:].copy()
                M[j, start:], M[i, start:] = where(swap, lower, upper), where(swap, upper, lower)
        inverse = 1.0 / A[j, j]
        if singular:
            inverse = where(A[j, j] == 0.0, 0.0, inverse)
        for i in range(j + 1, n):
            factor = A[i, j] * inverse
            A[i, j + 1 :] = A[i, j + 1 :] - factor * A[j, j + 1 :]
            B[i] = B[i] - factor * B[j]
            A[i, j] = 0.0
    return swaps


def _solve_positive(A: Array, B: Array) -> Array:
    """L D Lᵀ x = b; reads the lower triangle."""
    n = len(A)
    inverse: list[Array] = []
    for j in range(n):
        inverse.append(1.0 / A[j, j])
        for i in range(j + 1, n):
            factor = A[i, j] * inverse[j]
            for k in range(j + 1, i + 1):
                A[i, k] = A[i, k] - factor * A[k, j]
            B[i] = B[i] - factor * B[j]
        for i in range(j + 1, n):
            A[i, j] = A[i, j] * inverse[j]
    for i in reversed(range(n)):
        B[i] = B[i] * inverse[i]
        for k in range(i + 1, n):
            B[i] = B[i] - A[k, i] * B[k]
    return B


_ELIMINATIONS = {"gen": _solve_general, "pos": _solve_positive}


@handles(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """The Euclidean norm of vectors, the Frobenius norm of matrices; for vectors also ord 1 and inf."""
    (a,) = floats(x)
    if ord is None and axis is None:
        a = a.reshape(-1) if not keepdims else a
    vector = a.ndim == 1 or isinstance(axis, int)
    if ord not in (None, *((2, 1, math.inf) if vector else ("fro",))):
        raise TypeError(f"linalg.norm met traced values with ord={ord!r}: only the Euclidean norm, 1 and inf compile.")
    total, absolute = HANDLERS[np.sum], HANDLERS[np.absolute](a)
    if ord == 1:
        result: Array = total(absolute, axis, keepdims=keepdims)
    elif ord == math.inf:
        result = HANDLERS[np.max](absolute, axis, keepdims=keepdims)
    else:
        result = HANDLERS[np.sqrt](total(a * a, axis, keepdims=keepdims))
    return result


def _each(function: Any, *arrays: Array) -> Array:
    """Apply a function to each matrix of stacks, with broadcasting of the leading axes."""
    lead = np.broadcast_shapes(*[a.shape[:-2] for a in arrays])
    if 0 in lead:
        raise ValueError(f"linalg: a stack of no matrices, of shape {lead}, has no result.")
    ids = [np.broadcast_to(a.ids, lead + a.shape[-2:]) for a in arrays]
    parts = [function(*[Array(arrays[0].origin, np.array(i[at])) for i in ids]).ids for at in np.ndindex(lead)]
    return Array(arrays[0].origin, np.reshape(np.array(parts, np.int64), lead + parts[0].shape))
