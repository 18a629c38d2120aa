"""Least squares of any rank by singular values: one-sided Jacobi rotations, compiled.

A matrix B (m, n) is rotated until its rows (or its columns, whichever are fewer) are orthogonal, see `jacobi`. Their
squared norms are the squared singular values s²; values below a fraction of the largest count as zero. s is as accurate
as B, while eigenvalues of B Bᵀ would lose half of the digits.

O(m n min(m, n)) operations for each sweep, five to nine sweeps: about 50 times the cost of a factorization. Choose it
where rows may be redundant and forces must be accurate; `filtered_system` is for systems that are solved in every step.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy
from numpy.typing import NDArray

import delassus.numpy as np
from delassus.linalg.jacobi import orthogonalize

RANK: Final = 1e-12
"""Squared singular values below this fraction of the largest count as zero, and so do eigenvalues of B Bᵀ."""


class Nearest(NamedTuple):
    """x (n,), the multipliers λ (m,), and the infeasible part of γ (m,)."""

    x: Any
    force: Any
    contradiction: Any


def nearest_solution(B: Any, free: Any, gamma: Any, rank: Any, still: Any = 0.0) -> Nearest:
    """x (n,) nearest to `free` that minimizes |B x + γ|, and the smallest λ (m,) with x = free + Bᵀ λ.

    Squared singular values below a fraction `rank` of the largest are not used. γ is infeasible along directions with
    s² below the fraction `still`.
    """
    m, n = B.shape
    if m <= n:  # orthogonalize rows of B together with γ and the rotation
        orthogonal = orthogonalize(np.concatenate([B, gamma[:, None], np.eye(m)], 1), n)
        C, component, V = orthogonal[:, :n], orthogonal[:, n], orthogonal[:, n + 1 :]
        squares = np.sum(C * C, 1)
        y = -(C @ free + component) * inverse_squares(squares, rank)
        return Nearest(free + C.T @ y, V.T @ y, V.T @ np.where(_count(squares, still), 0.0, component))
    orthogonal = orthogonalize(np.concatenate([B.T, np.eye(n)], 1), m)
    C, V = orthogonal[:, :m], orthogonal[:, m:]
    squares = np.sum(C * C, 1)
    inverse = inverse_squares(squares, rank)
    y = -(C @ (B @ free + gamma)) * inverse
    return Nearest(free + V.T @ y, C.T @ (y * inverse), gamma - C.T @ (C @ gamma * inverse_squares(squares, still)))


class Decomposition(NamedTuple):
    """For a matrix B (m, n) with k = min(m, n): (B Bᵀ)⁺ = X diag(gram) Xᵀ, (B Bᵀ)⁺ B = X diag(mixed) Z and B⁺ B = Zᵀ
    diag(projector) Z.
    """

    X: Any
    """X (m, k)."""
    Z: Any
    """Z (k, n)."""
    gram: Any
    mixed: Any
    projector: Any


def decompose(B: Any) -> Decomposition:
    """The pseudo-inverses of B and B Bᵀ; squared singular values below `RANK` of the largest count as zero."""
    m, n = B.shape
    if m <= n:  # V B = C, the rows of C orthogonal
        orthogonal = orthogonalize(np.concatenate([B, np.eye(m)], 1), n)
        C, V = orthogonal[:, :n], orthogonal[:, n:]
        inverse = _inverse_or_nan(C)
        return Decomposition(V.T, C, inverse, inverse, inverse)
    orthogonal = orthogonalize(np.concatenate([B.T, np.eye(n)], 1), m)  # V Bᵀ = C
    C, V = orthogonal[:, :m], orthogonal[:, m:]
    inverse = _inverse_or_nan(C)
    return Decomposition(C.T, V, inverse * inverse, inverse, np.where(inverse > 0.0, 1.0, inverse))


def gram_pseudo_inverse(A: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """(Aᵀ A)⁺ (…, n, n) of matrices A (…, m, n), by LAPACK's singular values: the host's reference for `decompose`."""
    _, s, Vt = numpy.linalg.svd(A, full_matrices=False)
    is_kept = s**2 > RANK * numpy.max(s, axis=-1, keepdims=True, initial=0.0) ** 2
    inverse = numpy.where(is_kept, 1.0 / numpy.where(is_kept, s, 1.0) ** 2, 0.0)
    pseudo: NDArray[numpy.float64] = (Vt.mT * inverse[..., None, :]) @ Vt
    return pseudo


def inverse_squares(squares: Any, share: Any) -> Any:
    """1/s² (k,), zero where s² is at most a fraction of the largest."""
    is_kept = _count(squares, share)
    return np.where(is_kept, 1.0 / np.where(is_kept, squares, 1.0), 0.0)


def _count(squares: Any, share: Any) -> Any:
    """Whether s² is more than a fraction of the largest."""
    return squares > share * np.max(squares)


def _inverse_or_nan(C: Any) -> Any:
    """1/s² of orthogonal vectors (k, l), zero below `RANK` of the largest; NaN where a vector is not finite."""
    squares = np.sum(C * C, 1)
    inverse = inverse_squares(squares, RANK)
    return np.where(np.isnan(squares), np.nan, inverse)
