"""Lemke's method for the linear complementarity problem 0 ≤ z ⊥ w = M z + q ≥ 0.

An artificial variable z0 makes all w = M z + q + z0 d nonnegative, and is then driven to zero. In each pivot a variable
enters the basis, always the complement of the one that has just left, until z0 leaves. The ratio test of the simplex
method decides what leaves. Friction causes ties, so q is perturbed by an infinitesimal multiple of an irregular vector;
with this no basis repeats. For matrices of frictional contact the method ends with a solution if velocities exist that
separate all contacts (Anitescu, Potra); otherwise it may end in a ray, on which no variable leaves.

Each pivot costs 2 n² multiplications and as many comparisons; n/2 to 2 n pivots are typical, the cost of a few
inverses. A warm start does not help. Choose it for pyramids, few contacts, and guaranteed results.

References: C.E. Lemke (1965); R.W. Cottle, J.-S. Pang, R.E. Stone, The Linear Complementarity Problem (1992), §4.4.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import while_loop
from delassus.compiler.tracing.trace import trace_of
from delassus.contact.solvers.progress import FOREVER
from delassus.linalg.filtered_system import regularization

_NEVER: Final = 1e100
"""Ratios beyond this belong to bounds that count as infinite."""


_SMALL: Final = 24
"""Number of variables up to which rounding errors of successive pivots do not accumulate."""


class LemkeSolution(NamedTuple):
    """z (n,) ≥ 0, the number of pivots, and whether z0 has left or the method ended in a ray."""

    z: Any
    pivots: Any
    solved: Any
    ray: Any


class _Tableau(NamedTuple):
    """State of the iteration.

    Attributes:
        T: (n, n + 2) B⁻¹, and B⁻¹ times the perturbation and times q, as columns.
        basis: (n,) indices of basic variables: w from 0, z from n, z0 = 2 n.
        row, column: The leaving row, and the column (n,) of the entering variable.
        enters: The index of the entering variable.
        solved, ray: 1 if z0 has left, or if the method has ended in a ray; else 0.
        pivots: Number of pivots so far.
    """

    T: Any
    basis: Any
    row: Any
    column: Any
    enters: Any
    solved: Any
    ray: Any
    pivots: Any


def lemke(M: Any, q: Any, cover: Any, tie_tolerance: Any, most: Any) -> LemkeSolution:
    """Solve for M (n, n) and q (n,) with entries of the order of one.

    Args:
        M: The matrix.
        q: The vector.
        cover: (n,) d > 0; another covering vector leads along another path.
        ties: Relative difference below which ratios are tied.
        most: Maximum number of pivots.
    """
    n = len(q)
    # Rows of the basic variables, initially w: B⁻¹, B⁻¹ times the perturbation, and B⁻¹ q.
    rows = np.concatenate([np.eye(n), np.array(uneven(n))[:, None], q[:, None]], 1)
    basis, row, enters = np.array(_places(n)), np.argmin(q / cover) + 0.0, np.array(2.0 * n)
    solved, ray, count = np.where(np.min(q) < 0.0, 0.0, 1.0), np.array(0.0), np.array(0.0)

    def refine(T: Any, basis: Any, x: Any, right: Any) -> Any:
        """x = B⁻¹ b after a step of iterative refinement with the residual b - B x."""
        w, z, z0 = _values(basis, x)
        return x + T[:, :n] @ (right - w + M @ z + z0 * cover)

    def goes_on(last: _Tableau) -> Any:
        return (last.solved + last.ray == 0.0) & (last.pivots < most)

    def pivot(last: _Tableau) -> _Tableau:
        T, basis, row, column, enters = last.T, last.basis, last.row, last.column, last.enters
        leaving = _places(n) == row
        ratios = select_row(leaving, T) / select_row(leaving, column)
        T = np.where(leaving[:, None], ratios, T - column[:, None] * ratios)
        leaves, basis = select_row(leaving, basis), np.where(leaving, enters, basis)
        solved = leaves == 2.0 * n
        enters = np.where(leaves < n, leaves + n, leaves - n)
        direction = _column(M, enters)
        column = T[:, :n] @ direction
        if n > _SMALL:
            column = refine(T, basis, column, direction)
            T = np.concatenate([T[:, :-1], refine(T, basis, T[:, -1], q)[:, None]], 1)
        row, ray = _leaving(T[:, -1], T[:, -2], column, basis == 2.0 * n, tie_tolerance)
        flags = np.where(solved, 1.0, 0.0), np.where(ray & ~solved, 1.0, 0.0)
        return _Tableau(T, basis, row, column, enters, *flags, last.pivots + 1.0)

    start = _Tableau(rows, basis, row, -cover, enters, solved, ray, count)
    last: _Tableau = while_loop(goes_on, pivot, start, FOREVER)
    T, basis = last.T, last.basis
    x = refine(T, basis, refine(T, basis, T[:, -1], q), q)
    return LemkeSolution(np.maximum(_values(basis, x)[1], 0.0), last.pivots, last.solved > 0.5, last.ray > 0.5)


def _column(M: Any, variable: Any) -> Any:
    """The column (n,) of w or z in w - M z - z0 d = q."""
    n = len(M)
    of_z = select_row(_places(n) + n == variable, -M.T)
    return np.where(variable < n, np.where(_places(n) == variable, 1.0, 0.0), of_z)


def select_row(mask: Any, rows: Any) -> Any:
    """Select from rows or values the one for which a boolean holds."""
    if trace_of(mask, rows) is None:
        return rows[int(numpy.argmax(mask))]
    selected = rows[0]
    for k in range(1, len(rows)):
        selected = np.where(mask[k], rows[k], selected)
    return selected


def _leaving(q: Any, small_part: Any, column: Any, artificial: Any, tie_tolerance: Any) -> tuple[Any, Any]:
    """The row whose variable is the first to reach zero as the entering one grows, and whether there is none."""
    usable = column > regularization() * np.maximum(np.max(np.abs(column)), 1.0)
    slope = np.where(usable, column, 1.0)
    ratio = np.where(usable, np.maximum(q, 0.0) / slope, 10.0 * _NEVER)
    least = np.min(ratio)
    tied = usable & (ratio <= least * (1.0 + tie_tolerance) + 1e-12)
    order = np.where(tied, np.where(artificial, -_NEVER, small_part / slope), 10.0 * _NEVER)
    return np.argmin(order) + 0.0, least > _NEVER


def _values(basis: Any, x: Any) -> tuple[Any, Any, Any]:
    """w (n,), z (n,) and z0 of the basic variables x (n,)."""
    n, values = len(x), np.zeros(2 * len(x) + 1)
    if trace_of(basis, x) is None:
        values[basis.astype(int)] = x
        return values[:n], values[n : 2 * n], values[2 * n]
    for k in range(n):
        values = np.where(_places(2 * n + 1) == basis[k], x[k], values)
    return values[:n], values[n : 2 * n], values[2 * n]


def _places(count: int) -> Any:
    return numpy.arange(count, dtype=float)


def uneven(n: int) -> Any:
    """(n,) values between ½ and 1½ without a pattern: fractional parts of multiples of the golden ratio."""
    return 0.5 + numpy.arange(1, n + 1) * 0.6180339887498949 % 1.0
