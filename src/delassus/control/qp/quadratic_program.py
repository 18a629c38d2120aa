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
    """K x + k in second-order cones: K (…, cone rows, n), k (…, cone rows), and how many rows each cone has.

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

    Arrays may have batch axes in front, which broadcast. What is not given has no rows, or no bound.

    Attributes:
        H: (…, n, n), symmetric and not indefinite; it may be singular.
        g: (…, n).
        A, b: (…, equalities, n) and (…, equalities); rows may depend on each other.
        C, lower, upper: (…, rows, n), (…, rows), (…, rows); bounds may be infinite.
        K, k: (…, cone rows, n), (…, cone rows).
        cones: How many rows each cone has, its axis last: ‖all but the last‖ ≤ the last.
        names: Of the rows of A, of C, and of the cones, in this order; by default "equality 0", "row 0", "cone 0".
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
        """The best x, and how good it is, whatever the method says of itself.

        Args:
            method: "proximal", the project's own, compiled for the program's shape and zeros, which solves a batch
                in lanes; "proxsuite" (without cones) or "clarabel", one program after the other.
            start: The answer to a program that was much the same.
            tolerance: Of `primal` and `dual`, by default 1e-9; rows and gradient are met to this share of what cancels
                in them, too, and where that is large, to its rounding.
            iterations: At most so many, by default 200.
        """
        return solve_by(self, method, start, tolerance, iterations)
