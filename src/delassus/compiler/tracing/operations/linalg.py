"""Dense algebra on traced matrices.

A compiled kernel cannot raise an error for one state of a batch. For matrices for which NumPy raises `LinAlgError`
(singular, or not positive definite), the results of that state are inf or NaN.
"""

import math
from typing import Any

import numpy as np

from delassus.compiler.tracing.array import Array
from delassus.compiler.tracing.handlers import HANDLERS, handles
from delassus.compiler.tracing.lifting import floats
from delassus.compiler.tracing.operations import elimination


def _square(name: str, a: Array) -> int:
    """The size of a (stack of) square matrices."""
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"linalg.{name}: a square matrix is needed, got shape {a.shape}.")
    return a.shape[-1]


def _stacked(*arrays: Array) -> bool:
    return any(a.ndim > 2 for a in arrays)


@handles(np.linalg.cholesky)
def cholesky(a: Any, *, upper: bool = False) -> Array:
    """The lower triangular L with L Lᵀ = A, or with `upper` U = Lᵀ; reads the same triangle of A. n³/3 operations."""
    (A,) = floats(a)
    _square("cholesky", A)
    if upper:
        return cholesky(A.mT).mT.copy()
    if _stacked(A):
        return _map_matrices(cholesky, A)
    return elimination.cholesky(A)


@handles(np.linalg.solve)
def solve(a: Any, b: Any, *, assume_a: str = "gen") -> Array:
    """x with A x = b, for one or several right-hand sides.

    `assume_a="gen"`: Gaussian elimination with partial pivoting; pivots may differ between states.
    `assume_a="pos"` (positive definite): L D Lᵀ without square roots and pivoting, half the operations.
    """
    A, B = floats(a, b)
    n = _square("solve", A)
    # NumPy 2's rule: b is a vector only if it has exactly one axis.
    rows = B.shape[0] if B.ndim == 1 else B.shape[-2]
    if rows != n:
        raise ValueError(f"linalg.solve: a matrix of shape {A.shape} does not fit a right-hand side {B.shape}.")
    if B.ndim == 1 and A.ndim > 2:
        return _map_matrices(lambda m: solve(m, B, assume_a=assume_a), A)
    if _stacked(A, B):
        return _map_matrices(lambda m, r: solve(m, r, assume_a=assume_a), A, B)
    if assume_a not in _ELIMINATIONS:
        raise ValueError(f"linalg.solve: assume_a is 'gen' or 'pos', not {assume_a!r}.")
    X = _ELIMINATIONS[assume_a](A, B if B.ndim == 2 else B[:, None])
    return X.reshape(B.shape)


@handles(np.linalg.inv)
def inv(a: Any, *, assume_a: str = "gen") -> Array:
    """A⁻¹, by solving against the identity; `assume_a` as for `solve`."""
    (A,) = floats(a)
    identity = A.origin.lift(np.eye(_square("inv", A)))
    if _stacked(A):
        return _map_matrices(lambda m: solve(m, identity, assume_a=assume_a), A)
    return solve(A, identity, assume_a=assume_a)


@handles(np.linalg.det)
def det(a: Any) -> Array:
    """The determinant, by elimination with partial pivoting."""
    (A,) = floats(a)
    _square("det", A)
    if _stacked(A):
        return _map_matrices(det, A)
    pivots, odd = elimination.pivots(A)
    result = A.origin.lift(1.0)
    for pivot in pivots:
        result = result * pivot
    signed: Array = HANDLERS[np.where](odd, -result, result)
    return signed


_ELIMINATIONS = {"gen": elimination.solve_general, "pos": elimination.solve_positive}


@handles(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """The Euclidean norm of vectors, the Frobenius norm of matrices; for vectors also ord 1 and inf."""
    (a,) = floats(x)
    if ord is None and axis is None:
        a = a.reshape(-1) if not keepdims else a
    vector = a.ndim == 1 or isinstance(axis, int)
    if ord not in (None, *((2, 1, math.inf) if vector else ("fro",))):
        raise TypeError(
            f"linalg.norm met traced values with ord={ord!r}: kernels support the Euclidean norm, 1 and inf."
        )
    total, absolute = HANDLERS[np.sum], HANDLERS[np.absolute](a)
    if ord == 1:
        result: Array = total(absolute, axis, keepdims=keepdims)
    elif ord == math.inf:
        result = HANDLERS[np.max](absolute, axis, keepdims=keepdims)
    else:
        result = HANDLERS[np.sqrt](total(a * a, axis, keepdims=keepdims))
    return result


def _map_matrices(function: Any, *arrays: Array) -> Array:
    """Apply a function to each matrix of stacks, with broadcasting of the leading axes."""
    lead = np.broadcast_shapes(*[a.shape[:-2] for a in arrays])
    if 0 in lead:
        raise ValueError(f"linalg: a stack of shape {lead} has no matrices; there must be at least one.")
    ids = [np.broadcast_to(a.ids, lead + a.shape[-2:]) for a in arrays]
    parts = [function(*[Array(arrays[0].origin, np.array(i[at])) for i in ids]).ids for at in np.ndindex(lead)]
    return Array(arrays[0].origin, np.reshape(np.array(parts, np.int64), lead + parts[0].shape))
