"""Lexicographic least squares of any rank in two stages, by compiled orthogonal decompositions.

    Minimize first |K x - g|, then, among all minimizers, |F x - t|, then |x|.

If the rows of K are independent, K = R Q with orthonormal rows Q, as in Mistry's use of QR. Otherwise K is orthogonal
vectors times an orthogonal matrix (`jacobi`), which reveals the rank. Along large singular values K x = g is solved.
Along singular values at the level of rounding x is free. Between these two ranges, x has no component: neither solving
K x = g nor treating x as free would be accurate.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import while_loop
from delassus.compiler.tracing.trace import computing_in
from delassus.linalg.jacobi import orthogonalize
from delassus.linalg.ldl import ldl

_UNSEEN: Final = 1e3
"""Singular values below this multiple of the rounding error of the largest are zero."""

_CLEAR: Final = 1e-8
"""Smallest squared norm of a row orthogonalized against the previous ones, relative to the largest, of independent
rows.
"""

_SHARE: Final = 1e-7
"""ε of the second stage, relative to the largest squared norm of a column; x is accurate to 1e-16/ε along free
directions.
"""

_SETTLED: Final = 1e-12
"""The relative change of t in the last iteration of the second stage."""

_MOST: Final = 100
"""Maximum number of iterations of the second stage; three to ten are typical."""


class Stage(NamedTuple):
    """The smallest minimizer x of |K x - g|, and its free directions.

    `x` is (n,). `seen` has orthonormal directions (·, n) of the row space of K, some of them zero, and `freedoms` is
    the dimension of its null space. `met` is 1 for each direction of the column space of K that is used, and `left` (·,
    k) has these directions, orthonormal.
    """

    x: Any
    seen: Any
    freedoms: Any
    left: Any
    met: Any

    def open_part(self, rows: Any) -> Any:
        """The projection of rows (p, n), or of one x (n,), onto the null space of K."""
        return rows - (rows @ self.seen.T) @ self.seen


def first_stage(K: Any, g: Any, rank: Any, scale: Any = 1.0, pushes: bool = False) -> Stage:
    """The first stage, for K (k, n) and g (k,); squared singular values below a fraction `rank` are not kept.

    They are compared with the largest, and with a `scale` of squares, below which values are rounding errors. `left` is
    computed if `pushes` is true. Independent rows, the usual case, are orthonormalized by triangular factors; singular
    values are computed for the others.
    """
    k, n = K.shape
    if not k:
        return Stage(np.zeros(n), np.zeros((0, n)), np.array(float(n)), np.zeros((0, 0)), np.zeros(0))
    if k > n:
        return _by_singular_values(K, g, rank, scale, pushes)
    stage_by_triangles, clear = _by_triangles(K, g, scale, pushes)

    def decompose(carry: Any) -> Any:
        _, K, g, _ = carry
        return np.array(False), K, g, tuple(_by_singular_values(K, g, rank, scale, pushes))

    result = while_loop(lambda carry: carry[0], decompose, (~clear, K, g, tuple(stage_by_triangles)), 1)[3]
    return Stage(*result)


def _by_triangles(K: Any, g: Any, scale: Any, pushes: bool) -> tuple[Stage, Any]:
    """The stage for independent rows, K = R Q by two Cholesky factorizations of K Kᵀ, and whether it is reliable."""
    k, n = K.shape
    squares = np.sum(K * K, 1)
    most = _or_one(np.maximum(np.max(squares), scale))
    # A regularization of the size of rounding keeps pivots from zero; the second factorization removes it.
    first = ldl(K @ K.T + 4.0 * 2.0 ** -computing_in().digits * most * np.eye(k))
    clear = np.all(first.inverse * (_CLEAR * most) < 1.0) & np.all(first.inverse > 0.0)
    # Dependent rows have no such factors: replace them by others, which are not used.
    Q, y = np.where(clear, first.whiten(K), np.eye(k, n)), first.whiten(g)
    second = ldl(Q @ Q.T)
    Q, y = second.whiten(Q), second.whiten(y)
    x = Q.T @ y
    x = x + Q.T @ second.whiten(first.whiten(g - K @ x))
    left_vectors, is_used = (np.eye(k) if pushes else np.zeros((k, 0))), np.ones(k)
    return Stage(x, Q, np.array(float(n - k)), left_vectors, is_used), clear


def _by_singular_values(K: Any, g: Any, rank: Any, scale: Any, pushes: bool) -> Stage:
    k, n = K.shape
    if k <= n:  # orthogonalize rows of K together with g and the rotation
        along_with = [K, g[:, None], np.eye(k)] if pushes else [K, g[:, None]]
        orthogonal = orthogonalize(np.concatenate(along_with, 1), n)
        C, component, turn = orthogonal[:, :n], orthogonal[:, n], orthogonal[:, n + 1 :]
        inverse, seen = _inverse(C, rank, scale)
        unit = C * np.sqrt(seen / _or_one(np.sum(C * C, 1)))[:, None]
        is_used = np.where(inverse > 0.0, 1.0, 0.0)
        return Stage(C.T @ (component * inverse), unit, float(n) - np.sum(seen), turn, is_used)
    orthogonal = orthogonalize(np.concatenate([K.T, np.eye(n)], 1), k)
    C, V = orthogonal[:, :k], orthogonal[:, k:]
    inverse, seen = _inverse(C, rank, scale)
    left_vectors = C * np.sqrt(inverse)[:, None]
    is_used = np.where(inverse > 0.0, 1.0, 0.0)
    return Stage(V.T @ ((C @ g) * inverse), V * seen[:, None], float(n) - np.sum(seen), left_vectors, is_used)


def second_stage(stage: Stage, F: Any, t: Any) -> Any:
    """x (n,) of the second stage, for F (p, n) and t (p,). States without free directions skip it.

    Proximal iterations from the smallest x, x ← x + (Aᵀ A + ε)⁻¹ Aᵀ (t - F x), A the projection of F onto the null
    space of K: they converge to the smallest solution at any rank, and do not change K x.
    """
    n = len(stage.x)
    if not len(F):
        return stage.x

    def choose(carry: Any) -> Any:
        _, x, seen, t, F = carry
        scale = _or_one(np.max(np.sum(F * F, 0)))
        A = F - (F @ seen.T) @ seen
        response = ldl(A.T @ A + _SHARE * scale * np.eye(n))

        size = np.max(np.abs(F)) * np.max(np.abs(x)) + np.max(np.abs(t))

        def iterate(carry: Any) -> Any:
            x, left, _ = carry
            step = response.solve(A.T @ left)
            step = step - seen.T @ (seen @ step)
            change = A @ step
            return x + step, left - change, np.max(np.abs(change))

        start = (x, t - F @ x, np.array(np.inf))
        x, _, _ = while_loop(lambda carry: carry[2] > _SETTLED * size, iterate, start, _MOST)
        return np.array(False), x, seen, t, F

    start = (stage.freedoms > 0.5, stage.x, stage.seen, t, F)
    result: Any = while_loop(lambda carry: carry[0], choose, start, 1)[1]
    return result


def _inverse(C: Any, rank: Any, scale: Any) -> tuple[Any, Any]:
    """1/s² of orthogonal vectors, zero where s² is not kept; and 1 for those of the row space, else 0."""
    squares = np.sum(C * C, 1)
    most = np.maximum(np.max(squares), scale)
    is_kept = squares > rank * most
    seen = squares > (_UNSEEN * 2.0 ** -computing_in().digits) ** 2 * most
    return np.where(is_kept, 1.0 / _or_one(squares), 0.0), np.where(seen, 1.0, 0.0)


def _or_one(x: Any) -> Any:
    return np.where(x > 0.0, x, 1.0)
