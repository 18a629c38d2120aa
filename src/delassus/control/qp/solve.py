"""The kernel that solves quadratic programs, one or a batch, and inlines into other kernels."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.host.inputs import Bundle
from delassus.compiler.host.kernel import Floats, kernel
from delassus.control.qp.iterate import Iterate
from delassus.control.qp.proximal import LARGE, solve_scaled
from delassus.control.qp.scaled import FAR, Data, Scaled, largest
from delassus.control.qp.shape import QPShape

TOLERANCE: Final = 1e-9
"""Tolerance of the errors of rows and of the gradient, in the program's units."""

LARGEST: Final = 1e50
"""Right-hand sides beyond this count as not finite."""

ITERATIONS: Final = 200


class QPResult(NamedTuple):
    """The solution of one QP or a batch, as arrays.

    Attributes:
        x: (…, n).
        multipliers: (…, multipliers) of A, C and K: H x + g + Aᵀ y + Cᵀ z + Kᵀ w = 0.
        primal: (…) the largest error of rows, in their units: violations, and multipliers that pull or act away from
            bounds.
        dual: (…) the largest entry of H x + g + Aᵀ y + Cᵀ z + Kᵀ w.
        iterations: (…) number of Newton steps.
        status: (…) values of `QPStatus`.
    """

    x: Any
    multipliers: Any
    primal: Any
    dual: Any
    iterations: Any
    status: Any


class QPInputs(NamedTuple):
    """Start and stopping criteria.

    Attributes:
        start: (n,) initial x, such as the solution of a similar program.
        push: (multipliers,) initial multipliers.
        tolerance: () tolerance of the errors.
        iterations: () maximum number of Newton steps.
    """

    start: Any = None
    push: Any = None
    tolerance: Any = TOLERANCE
    iterations: Any = ITERATIONS


USUAL: Final = QPInputs()
QP_INPUTS: Final = Bundle(QPInputs, start="(n)", push="(multipliers)", tolerance="()", iterations="()")


@kernel(
    "(n,n),(n),(equalities,n),(equalities),(rows,n),(rows),(rows),(cone_rows,n),(cone_rows)"
    "->(n),(multipliers),(),(),(),()",
    inputs={"solve": QP_INPUTS},
    result=QPResult,
)
def solve_qp(
    shape: QPShape,
    H: Any,
    g: Any,
    A: Any,
    b: Any,
    C: Any,
    lower: Any,
    upper: Any,
    K: Any,
    k: Any,
    *,
    solve: QPInputs = USUAL,
) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
    """x, multipliers, errors of rows and gradient, Newton steps, status; fields of `solve` are also keywords."""
    return solve_qp_inline(shape, Data(H, g, A, b, C, lower, upper, K, k), solve)


def solve_qp_inline(shape: QPShape, data: Data, solve: QPInputs = USUAL) -> QPResult:
    """Solve a QP inside a kernel: the inlined form of the kernel above."""
    start, push, tolerance, iterations = solve
    e, n = shape.equalities, shape.n
    good = np.isfinite(np.sum(data.H) + np.sum(data.g) + np.sum(data.A) + np.sum(data.b) + np.sum(data.C))
    good = good & np.isfinite(np.sum(data.K) + np.sum(data.k)) & ~np.any(np.isnan(data.lower) | np.isnan(data.upper))
    good = good & np.all(data.lower < FAR) & np.all(data.upper > -FAR) if shape.rows else good
    good = good & (_size(data) < LARGEST)
    p = Scaled.of(shape, data)
    x, multipliers = np.zeros(n), np.zeros(shape.multipliers)
    if start is not None:
        x = np.where(np.isfinite(np.sum(start)), start / p.unknown, 0.0)
    if push is not None and shape.multipliers:
        multipliers_scaled = push / np.concatenate([p.equal_push, p.row_push])
        multipliers = np.where(np.max(np.abs(multipliers_scaled)) < LARGE, multipliers_scaled, 0.0)  # false for NaN
    iterate = solve_scaled(p, x, multipliers[:e], multipliers[e:], tolerance, np.where(good, iterations, 0.0))
    return _pack_result(p, iterate, good, tolerance, crossing(data.lower, data.upper))


def _size(data: Data) -> Any:
    """The largest value on the right-hand sides, as a scale of rounding errors."""
    return sum((np.max(np.abs(x)) for x in (data.g, data.b, data.k) if len(x)), np.array(0.0))


def crossing(lower: Any, upper: Any) -> Any:
    """Smallest violation of a row whose lower bound exceeds its upper bound: half of their difference."""
    gap = np.where(lower > upper, lower - upper, 0.0)
    return 0.5 * largest(gap)


def _pack_result(p: Scaled, iterate: Iterate, good: Any, tolerance: Any, crossed: Any) -> QPResult:
    y, z = iterate.multipliers(p)
    good = good & np.isfinite(np.sum(iterate.x) + np.sum(z) + np.sum(y))
    is_met = iterate.is_within(tolerance)
    good = good & (is_met | ~iterate.is_unbounded(p))
    status = np.where(is_met, 0.0, np.where(iterate.contradiction(p), 1.0, 2.0))
    status = np.where(crossed > 0.0, 1.0, status)
    multipliers = np.concatenate([p.equal_push * y, p.row_push * z])
    return QPResult(
        np.where(good, p.unknown * iterate.x, 0.0),
        np.where(good, multipliers, 0.0),
        np.where(good, np.maximum(iterate.primal, crossed), numpy.inf),
        np.where(good, iterate.dual, numpy.inf),
        iterate.count,
        np.where(good, status, 3.0),
    )
