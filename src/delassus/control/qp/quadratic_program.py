"""`QP`: one or many quadratic programs with names, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from delassus.common.options import Options, accept_groups
from delassus.control.qp.back_ends import solve_by
from delassus.control.qp.data import QPData
from delassus.control.qp.solution import QPSolution


@dataclass(frozen=True, eq=False)
class EqualityRows(Options):
    """A x = b: A (…, equalities, n), b (…, equalities).

    >>> dl.control.EqualityRows(A=np.ones((1, 2)), b=[1.0]).A.shape
    (1, 2)
    """

    A: Any = None
    b: Any = None


@dataclass(frozen=True, eq=False)
class InequalityRows(Options):
    """lower ≤ C x ≤ upper: C (…, rows, n), bounds (…, rows), which may be infinite; None for no bound.

    >>> dl.control.InequalityRows(C=np.eye(2), upper=[1.0, 1.0]).C.shape
    (2, 2)
    """

    C: Any = None
    lower: Any = None
    upper: Any = None


@dataclass(frozen=True, eq=False)
class ConeRows(Options):
    """K x + k in second-order cones: K (…, cone rows, n), k (…, cone rows), and the number of rows of each cone.

    >>> dl.control.ConeRows(K=np.eye(3), k=np.zeros(3), cones=(3,)).cones
    (3,)
    """

    K: Any = None
    k: Any = None
    cones: Any = None


@accept_groups(
    "H g * names unknowns shape",
    equalities=EqualityRows(),
    inequalities=InequalityRows(),
    conic=ConeRows(),
)
@dataclass(frozen=True, eq=False, repr=False)
class QP(QPData):
    """min ½ xᵀ H x + gᵀ x  with  A x = b,  lower ≤ C x ≤ upper,  and K x + k in second-order cones.

        answer = QP(H, g, C=C, upper=u).solve()

    Arrays may have batch axes, which broadcast. Omitted matrices have no rows, omitted bounds are infinite.

    Attributes:
        H: (…, n, n), symmetric and positive semidefinite.
        g: (…, n).
        A, b: (…, equalities, n) and (…, equalities); rows may be redundant.
        C, lower, upper: (…, rows, n), (…, rows), (…, rows); bounds may be infinite.
        K, k: (…, cone rows, n), (…, cone rows).
        cones: Number of rows of each cone, its axis last: ‖all but the last‖ ≤ the last.
        names: Names of the rows of A, of C, and of the cones, in this order; by default "equality 0", "row 0", "cone
            0".
        unknowns: Names of the unknowns; by default "x 0" and so on.

    >>> program = dl.control.QP(np.eye(2), [-1.0, -2.0], C=np.eye(2), upper=[1.0, 1.0])
    >>> program.solve().x.round(6)
    array([1., 1.])
    """

    def solve(
        self,
        method: str = "proximal",
        *,
        start: QPSolution | None = None,
        tolerance: float | None = None,
        iterations: int | None = None,
    ) -> QPSolution:
        """Solve the program; residuals are computed independently of the method.

        Args:
            method: "proximal", the project's own, compiled for the shape and zeros of the program, which solves a batch
                in SIMD lanes; "proxsuite" (without cones) or "clarabel", one program at a time.
            start: The solution of a similar program, as a warm start.
            tolerance: Of `primal` and `dual`, by default 1e-9; rows and gradient also satisfy it relative to the terms
                that cancel in them, or to rounding where these are large.
            iterations: Maximum number of iterations, by default 200.
        """
        return solve_by(self, method, start, tolerance, iterations)
