"""Least squares for symmetric systems of any rank, by the factors L D Lᵀ of A + ε.

A (m, m) is positive semidefinite, with a diagonal of about one. It may be singular, since rows of loops are redundant
and robots pass singular poses. Eigenvalues σ well above ε are kept, those well below are dropped. There are two
methods:

`FilteredSystem`, with P = ε (A + ε)⁻¹, whose eigenvalues are ε/(ε + σ),

    c = f(f(P)) b, f(p) = 3 p² - 2 p³       the part of b outside the range of A
    x ← x + (A + ε)⁻¹ (b - c - A x)         the smallest x that solves for the rest

The iterations are loops, which states of full rank skip. Choose it for systems of many rows, and if c is reported.

`least_norm`, with E = (A + ε)⁻¹: E A E annihilates what is outside the range of A, and equals A⁺ up to relative errors
2ε/σ, which each refinement squares. Straight-line code: choose it for a few rows, and for many right-hand sides.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import while_loop
from delassus.compiler.tracing.trace import computing_in
from delassus.linalg.ldl import Ldl, ldl

_CORRECTIONS: Final = 20
"""Maximum number of refinements of x; one or two are typical."""


def regularization() -> float:
    """ε relative to a diagonal of one, for factors of matrices with redundant rows."""
    return 1e-12 if computing_in().name == "float64" else 1e-5


class FilteredSystem(NamedTuple):
    """A (m, m), ε, and the factors of A + ε."""

    A: Any
    epsilon: Any
    factors: Ldl

    @classmethod
    def of(cls, A: Any, epsilon: Any) -> FilteredSystem:
        """Factor a positive semidefinite A (m, m) with a diagonal of about one."""
        return cls(A, epsilon, ldl(A + epsilon * np.eye(len(A))))

    def solve(self, b: Any) -> Any:
        """The smallest x (m,) with the least |A x - b|."""
        x = self._reach(b - self.unreachable(b))
        return x - self.unreachable(x)  # removes rounding errors along the null space, amplified by 1/ε

    def unreachable(self, b: Any) -> Any:
        """f(f(P)) b: the part of b (m,) outside the range of A; zero, without iterations, if A has full rank."""

        def apply_filter(x: Any) -> Any:
            return self.epsilon * self.factors.solve(x)

        def refine(carry: Any) -> Any:
            x, _, count = carry
            twice = apply_filter(apply_filter(x))
            return 3.0 * twice - 2.0 * apply_filter(twice), x, count + 1.0

        digits = 2.0 ** -computing_in().digits
        is_significant = np.max(np.abs(apply_filter(apply_filter(b)))) > 8.0 * digits * np.max(np.abs(b))
        third, second, _ = while_loop(lambda carry: is_significant & (carry[2] < 2.5), refine, (b, b, np.array(0.0)), 3)
        return np.where(is_significant, 3.0 * second - 2.0 * third, 0.0)

    def _reach(self, b: Any) -> Any:
        """x (m,) with A x = b, for b in the range of A."""
        digits, size = 2.0 ** -computing_in().digits, np.max(np.abs(b))

        def correct(carry: Any) -> Any:
            x, residual, size, _ = carry
            x = x + self.factors.solve(residual)
            residual = b - self.A @ x
            return x, residual, np.max(np.abs(residual)), size

        def should_continue(carry: Any) -> Any:
            _, _, now, before = carry
            return (now > digits * size) & (now < 0.5 * before)

        start = np.where(np.isfinite(b), 0.0, np.nan)  # no iteration would be made, and zero returned
        return while_loop(should_continue, correct, (start, b, size, np.array(np.inf)), _CORRECTIONS)[0]


def least_norm(A: Any, B: Any) -> Any:
    """A⁺ B (…, m, k) of positive semidefinite matrices A (…, m, m) with a diagonal of about one.

    B must be in the range of A up to rounding: a part c outside it, as for infeasible rows, leaves up to 10⁻¹⁶/ε² c in
    the result. Use `FilteredSystem` for such B.
    """
    E = np.linalg.inv(A + regularization() * np.eye(A.shape[-1]), assume_a="pos")
    X = E @ (A @ (E @ B))
    for _ in range(2):
        X = X + E @ (A @ (E @ (B - A @ X)))
    return X


def scaled_least_norm(A: Any, B: Any) -> Any:
    """A⁺ B (m, k) of a positive semidefinite A (m, m) with any diagonal, by `least_norm` after scaling with the
    diagonal.
    """
    diagonal = np.stack([A[k, k] for k in range(len(A))])
    unit = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    return unit[:, None] * least_norm(A * (unit[:, None] * unit[None, :]), unit[:, None] * B)
