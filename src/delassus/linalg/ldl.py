"""Dense factors A = L D Lᵀ of symmetric systems with several right-hand sides.

n³/6 multiplications for the factors and n² for each right-hand side; no square roots, no pivoting: for positive
definite matrices. Only the lower triangle is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import delassus.numpy as np
from delassus.compiler.tracing.operations.elimination import eliminate_symmetric

_VANISHED: Final = 1e-10
"""Pivots of a semidefinite matrix below this fraction of their diagonal entry count as zero."""


@dataclass(frozen=True)
class Ldl:
    """Unit lower triangular L (n, n), and the inverse of the diagonal D (n,)."""

    L: Any
    inverse: Any

    def solve(self, b: Any) -> Any:
        """x with A x = b, for b (n,) or (n, k)."""
        x, n = self.half(b), len(self.inverse)
        for j in reversed(range(n)):
            x[j] = x[j] * self.inverse[j]
            if j + 1 < n:
                x[j] = x[j] - self.L[j + 1 :, j] @ x[j + 1 :]
        return x

    def half(self, b: Any) -> Any:
        """L⁻¹ b, for b (n,) or (n, k): bᵀ A⁻¹ c is the product of half(b), D⁻¹ and half(c)."""
        x = np.array(b)
        for j in range(len(self.inverse) - 1):
            x[j + 1 :] = x[j + 1 :] - _times(self.L[j + 1 :, j], x[j])
        return x

    def whiten(self, x: Any) -> Any:
        """D^-½ L⁻¹ x, for x (n,) or (n, k): its squared norm is xᵀ A⁻¹ x."""
        half, root = self.half(x), np.sqrt(np.maximum(self.inverse, 0.0))
        return half * root if np.ndim(half) == 1 else half * root[:, None]

    def other_half(self, y: Any) -> Any:
        """L⁻ᵀ y (n,)."""
        x, n = np.array(y), len(self.inverse)
        for j in reversed(range(n - 1)):
            x[j] = x[j] - self.L[j + 1 :, j] @ x[j + 1 :]
        return x


def ldl(A: Any) -> Ldl:
    """The factors of a positive definite matrix (n, n)."""
    A, inverse = np.array(A), np.zeros(len(A))
    eliminate_symmetric(A, inverse)
    return Ldl(A, inverse)


def ldl_semidefinite(A: Any) -> tuple[Ldl, Any]:
    """The factors of a positive semidefinite matrix (n, n), and whether it is singular.

    A pivot that vanishes is left out together with its column: its entry of `inverse` is zero, and so is the unknown
    that `solve` returns for it.
    """
    diagonal, A, is_singular = np.diagonal(A), np.array(A), np.array(0.0)

    def invert(j: int, pivot: Any) -> Any:
        nonlocal is_singular
        vanished = ~(pivot > _VANISHED * diagonal[j])
        is_singular = np.where(vanished, 1.0, is_singular)
        return np.where(vanished, 0.0, 1.0 / np.where(vanished, 1.0, pivot))

    inverse = np.zeros(len(A))
    eliminate_symmetric(A, inverse, invert)
    return Ldl(A, inverse), is_singular > 0.5


def ldl_regularized(A: Any, share: float) -> Ldl:
    """The factors of A + ε diag(A), for a positive semidefinite A (n, n) with redundant rows.

    ε is the `share` of each diagonal entry that is added to it; a zero entry gets that of the largest one.
    """
    diagonal = np.stack([A[k, k] for k in range(len(A))])
    largest = np.max(diagonal)
    diagonal = np.where(diagonal > 0.0, diagonal, np.where(largest > 0.0, largest, 1.0))
    return ldl(A + share * np.diag(diagonal))


def _times(column: Any, row: Any) -> Any:
    """A column times a scalar, or times a row."""
    return column * row if np.ndim(row) == 0 else np.outer(column, row)
