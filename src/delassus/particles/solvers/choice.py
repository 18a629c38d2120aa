"""The table of solvers for the system of a step.

cholesky              sparse factors of W + Jᵀ E⁻¹ J, and proximal iterations: any rows, default
multigrid             conjugate gradients on the same matrix, with two grids: for large sheets
superlu               SciPy's sparse LU of the full indefinite matrix: for comparison
cg                    conjugate gradients on the Schur complement J W⁻¹ Jᵀ + R, which is not formed
minres                minimal residuals on the full indefinite matrix
gauss_seidel          rows of the Schur complement, formed, color by color
pgs                   the same; contacts are projected in the same sweeps
sequential_impulses   the same on velocities, without the Schur complement, color by color in lanes
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from delassus.particles.solvers.direct import by_cholesky
from delassus.particles.solvers.krylov import by_cg, by_minres
from delassus.particles.solvers.multigrid import by_multigrid
from delassus.particles.solvers.superlu import by_superlu
from delassus.particles.solvers.sweeps import by_gauss_seidel, by_impulses
from delassus.particles.solvers.system import RowSolution, System

_WAYS: Final = {
    "cholesky": by_cholesky,
    "multigrid": by_multigrid,
    "superlu": by_superlu,
    "cg": by_cg,
    "minres": by_minres,
    "gauss_seidel": by_gauss_seidel,
    "pgs": by_gauss_seidel,
    "sequential_impulses": by_impulses,
}

METHODS: Final = tuple(_WAYS)

BY_BLOCKS: Final = ("cg", "gauss_seidel", "pgs", "sequential_impulses")
"""Methods that invert W, which is cheap if W is block diagonal."""


def solve_system(
    system: System, method: str, v: NDArray[np.float64], impulse: NDArray[np.float64], tolerance: float, iterations: int
) -> RowSolution:
    """Solve by a method, from velocities (3 nodes,), including prescribed ones, and impulses (m,)."""
    solver = by_cholesky if method == "multigrid" and not system.structure.free.any() else _WAYS[method]
    return solver(system, v, impulse, tolerance, iterations)
