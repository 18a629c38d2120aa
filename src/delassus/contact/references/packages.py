"""External convex solvers, imported on demand: clarabel for cones, proxsuite for bounds."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.errors import DelassusError

Array = NDArray[np.float64]


def package(name: str) -> ModuleType:
    """Import clarabel or proxsuite, or raise an error that says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise DelassusError(
            f"this reference is computed with the package {name}, which cannot be imported ({error}): "
            "pip install 'delassus[qp]'.",
            code="missing-package",
        ) from error


def solve_by_clarabel(
    H: Array, h: Array, A: Array, b: Array, cones: Sequence[tuple[str, int]], tolerance: float, **settings: Any
) -> Any:
    """Solve min ½ xᵀ H x + hᵀ x with b - A x in cones by clarabel's interior-point method, once for each of `settings`.

    Args:
        H, h: (n, n) and (n,).
        A, b: (m, n) and (m,).
        cones: Type and number of rows of each: "Zero", "Nonnegative", or "SecondOrder", whose first row is the axis.
        tolerance: Of gap and feasibility.
        settings: Others, by clarabel's names.
    """
    clarabel, sparse = package("clarabel"), package("scipy.sparse")
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = tolerance
    for name, value in settings.items():
        setattr(options, name, value)
    kinds = [getattr(clarabel, f"{kind}ConeT")(rows) for kind, rows in cones]
    upper = sparse.csc_matrix(np.triu(H))
    return clarabel.DefaultSolver(upper, h, sparse.csc_matrix(A), b, kinds, options).solve()


def solve_by_proxsuite(
    H: Array,
    h: Array,
    equalities: tuple[Array, Array],
    bounds: tuple[Array, Array, Array],
    tolerance: float,
    iterations: int,
    start: tuple[Array, ...] = (),
) -> Any:
    """Solve min ½ xᵀ H x + hᵀ x with A x = b and lower ≤ C x ≤ upper by proxsuite's method of multipliers.

    Args:
        H, h: (n, n) and (n,).
        equalities: A and b.
        bounds: C, lower and upper.
        tolerance: Absolute.
        iterations: Maximum number of iterations.
        start: x and the multipliers of both types of rows, or None.
    """
    solver = package("proxsuite").proxqp.dense.QP(len(h), len(equalities[1]), len(bounds[1]))
    solver.settings.eps_abs, solver.settings.eps_rel, solver.settings.max_iter = tolerance, 0.0, iterations
    solver.init(H, h, *equalities, *bounds)
    solver.solve(*start)
    return solver.results
