"""SciPy's sparse LU of the full indefinite matrix: slow, and an independent reference."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from delassus.errors import DelassusError
from delassus.particles.solvers.system import RowSolution, System, solve_status

Array = NDArray[np.float64]


class SingularMatrix(DelassusError, ArithmeticError):
    """A singular matrix."""

    code = "singular-matrix"


def kkt_matrix(system: System) -> sparse.csc_matrix:
    """[W, -Jᵀ; -J, -R] of the free velocities, sparse."""
    free = np.flatnonzero(system.free)
    W = system.W.tocsr()[free][:, free]
    J = system.J.tocsc()[:, free]
    return sparse.bmat([[W, -J.T], [-J, -sparse.diags(system.R)]], format="csc")


def by_superlu(system: System, v: Array, impulse: Array, tolerance: float, iterations: int) -> RowSolution:
    """Solve by LU."""
    free = np.flatnonzero(system.free)
    prescribed = np.where(system.free, 0.0, v)
    right = np.concatenate([(system.c - system.W @ prescribed)[free], system.b + system.J @ prescribed])
    try:
        x = splu(kkt_matrix(system)).solve(right)
    except RuntimeError as singular:
        raise SingularMatrix(
            "SuperLU finds the matrix of the step singular: rigid rows are redundant or infeasible. Use "
            "the method 'cholesky', which needs no full rank."
        ) from singular
    after = np.array(prescribed)
    after[free] = x[: len(free)]
    error = system.error(after, x[len(free) :])
    return RowSolution(after, x[len(free) :], error, 1, solve_status(error, tolerance))
