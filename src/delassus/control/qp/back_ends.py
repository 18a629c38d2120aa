"""Back ends of quadratic programs: the solver here, or external packages, one program at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import MOST_ITERATIONS, TOLERANCES, Range, check_integer, number_in_range, one_of
from delassus.contact.references.packages import package, solve_by_clarabel, solve_by_proxsuite
from delassus.control.qp.data import QPData
from delassus.control.qp.iterate import UNBOUNDED
from delassus.control.qp.measures import errors_of, falls_without_end
from delassus.control.qp.shape import QPError
from delassus.control.qp.solution import QPSolution
from delassus.control.qp.solve import ITERATIONS, TOLERANCE, solve_qp
from delassus.control.qp.status import QPStatus
from delassus.errors import expect

Array = NDArray[np.float64]
Answer = tuple[Array, Array, int, QPStatus]

_TOLERANCES = Range(0.0, 1.0, "zero or more, and below 1, such as 1e-9", TOLERANCES.code, open_above=True)


def solve_by(
    qp: QPData,
    method: str,
    start: QPSolution | None,
    tolerance: float | None,
    iterations: int | None,
) -> QPSolution:
    """Solve by a method given by name."""
    tolerance = number_in_range("tolerance", TOLERANCE if tolerance is None else tolerance, _TOLERANCES)
    count = ITERATIONS if iterations is None else iterations
    iterations = check_integer("iterations", count, 0, MOST_ITERATIONS, code="iterations-out-of-range")
    if start is not None:
        _check_start(qp, start)
    if isinstance(method, str) and method == "proximal":
        return _in_lanes(qp, start, tolerance, iterations)
    one_of("method", method, ("proximal", *PACKAGES), code="unknown-method")
    batch = qp.batch
    solutions = [
        _solve_one(qp.item(*index), method, start.item(*index) if start else None, tolerance, iterations)
        for index in np.ndindex(batch)
    ]

    def stacked(values: list[Any], *size: int) -> Any:
        return np.array(values).reshape((*batch, *size))

    shape = qp.shape
    return QPSolution(
        multipliers=stacked([a[1] for a in solutions], shape.multipliers),
        primal=stacked([a[4] for a in solutions]),
        dual=stacked([a[5] for a in solutions]),
        iterations=stacked([a[2] for a in solutions]),
        status=stacked([int(a[3]) for a in solutions]),
        qp=qp,
        x=stacked([a[0] for a in solutions], shape.n),
    )


def _check_start(qp: QPData, start: Any) -> None:
    expect("start", start, QPSolution, "another program's answer")
    shape, start_shape = qp.shape, start.qp.shape
    if (shape.n, shape.equalities, shape.rows, shape.cones) != (
        start_shape.n,
        start_shape.equalities,
        start_shape.rows,
        start_shape.cones,
    ):
        raise QPError(
            f"start solves {start.qp!r}; it must be a solution of a QP of this size, {qp!r}.", code="other-system"
        )


def _in_lanes(qp: QPData, start: QPSolution | None, tolerance: float, iterations: int) -> QPSolution:
    start_inputs: dict[str, Any] = {"start": start.x, "push": start.multipliers} if start is not None else {}
    if not qp.shape.multipliers:
        start_inputs.pop("push", None)
    result = solve_qp(qp.shape, *qp.arrays, tolerance=tolerance, iterations=float(iterations), **start_inputs)
    x, multipliers, primal, dual, count, status = result
    statuses = np.asarray(count).astype(int), np.asarray(status).astype(int)
    return QPSolution(multipliers, primal, dual, *statuses, qp, x)


def _solve_one(
    qp: QPData, method: str, start: QPSolution | None, tolerance: float, iterations: int
) -> tuple[Array, Array, int, QPStatus, float, float]:
    """Solve one program by a package: x, multipliers, iterations, status and errors; programs with NaN are skipped."""
    shape = qp.shape
    finite = all(np.isfinite(x).all() for x in (qp.H, qp.g, qp.A, qp.b, qp.C))
    finite = finite and bool(np.isfinite(qp.K).all() and np.isfinite(qp.k).all())
    finite = finite and not (np.isnan(qp.lower) | np.isnan(qp.upper)).any()
    if not finite:
        return np.zeros(shape.n), np.zeros(shape.multipliers), 0, QPStatus.NOT_FINITE, np.inf, np.inf
    x, multipliers, count, status = PACKAGES[method](qp, start, tolerance, iterations)
    is_distant = status is not QPStatus.SOLVED and np.abs(x).max() > UNBOUNDED
    if (is_distant or status is QPStatus.NOT_FINITE) and falls_without_end(qp, x):
        return np.zeros(shape.n), np.zeros(shape.multipliers), count, QPStatus.NOT_FINITE, np.inf, np.inf
    status = QPStatus.ITERATIONS if status is QPStatus.NOT_FINITE else status
    if not (np.isfinite(x).all() and np.isfinite(multipliers).all()):
        x, multipliers, status = np.zeros(shape.n), np.zeros(shape.multipliers), QPStatus.ITERATIONS
    if np.any(qp.lower > qp.upper):
        status = QPStatus.INFEASIBLE
    primal, dual = errors_of(qp, x, multipliers)
    return x, multipliers, count, status, float(primal), float(dual)


def by_proxsuite(qp: QPData, start: QPSolution | None, tolerance: float, iterations: int) -> Answer:
    """A proximal method of multipliers, without cones; infeasible rows are solved in the least-squares sense."""
    if qp.cones:
        raise QPError(
            "proxsuite solves programs without cones; use pyramids, or method='clarabel'.", code="not-supported"
        )
    shape = qp.shape
    lower, upper = (np.clip(x, -1e20, 1e20) for x in (qp.lower, qp.upper))
    initial = () if start is None else (start.x, *np.split(start.multipliers, [shape.equalities]))
    result = solve_by_proxsuite(
        qp.H,
        qp.g,
        (qp.A, qp.b),
        (qp.C, lower, upper),
        tolerance,
        max(iterations, 1) * 50,
        initial,
    )
    outcome = package("proxsuite").proxqp.QPSolverOutput
    status = {
        outcome.PROXQP_SOLVED: QPStatus.SOLVED,
        outcome.PROXQP_PRIMAL_INFEASIBLE: QPStatus.INFEASIBLE,
        outcome.PROXQP_SOLVED_CLOSEST_PRIMAL_FEASIBLE: QPStatus.INFEASIBLE,
        outcome.PROXQP_DUAL_INFEASIBLE: QPStatus.NOT_FINITE,
    }.get(result.info.status, QPStatus.ITERATIONS)
    return np.array(result.x), np.concatenate([result.y, result.z]), int(result.info.iter), status


def by_clarabel(qp: QPData, start: QPSolution | None, tolerance: float, iterations: int) -> Answer:
    """An interior-point method, which ignores the start and returns no solution for infeasible rows."""
    shape = qp.shape
    low, high = np.isfinite(qp.lower), np.isfinite(qp.upper)
    rows = [qp.A, qp.C[high], -qp.C[low]]
    sides = [qp.b, qp.upper[high], -qp.lower[low]]
    cones = [("Zero", shape.equalities), ("Nonnegative", int(high.sum() + low.sum()))]
    for span in shape.spans:
        order = [span.stop - 1, *range(span.start, span.stop - 1)]
        rows.append(-qp.K[order])
        sides.append(qp.k[order])
        cones.append(("SecondOrder", len(order)))
    result = solve_by_clarabel(
        qp.H,
        qp.g,
        np.vstack(rows),
        np.concatenate(sides),
        cones,
        tolerance,
        max_iter=iterations,
    )
    dual = np.array(result.z)
    y, above, below, cone_part = np.split(dual, np.cumsum([shape.equalities, int(high.sum()), int(low.sum())]))
    z = np.zeros(shape.rows)
    z[high] += above
    z[low] -= below
    w = np.zeros(shape.cone_rows)
    for span in shape.spans:
        w[[span.stop - 1, *range(span.start, span.stop - 1)]] = -cone_part[span]
    outcome = package("clarabel").SolverStatus
    infeasible = result.status in (outcome.PrimalInfeasible, outcome.AlmostPrimalInfeasible)
    status = QPStatus.SOLVED if result.status == outcome.Solved else QPStatus.ITERATIONS
    status = QPStatus.INFEASIBLE if infeasible else status
    if result.status in (outcome.DualInfeasible, outcome.AlmostDualInfeasible):
        status = QPStatus.NOT_FINITE
    return np.array(result.x), np.concatenate([y, z, w]), int(result.iterations), status


PACKAGES: Final[dict[str, Callable[..., Answer]]] = {"proxsuite": by_proxsuite, "clarabel": by_clarabel}
