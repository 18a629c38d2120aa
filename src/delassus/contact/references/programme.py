"""Convex programmes, min ½ xᵀ H x + hᵀ x with cones, and the packages that solve them, one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.contact.references.packages import package
from delassus.errors import BadArgument

Array = NDArray[np.float64]

_ATTEMPTS: Final = ((1e-14, 1e-12), (1e-13, 1e-10), (1e-12, 1e-10), (1e-12, 1e-8), (1e-10, 1e-8))
"""Tolerances and regularisations of clarabel: a sharp one can fail on singular problems where a blunt one succeeds."""


@dataclass
class Programme:
    """min ½ xᵀ H x + hᵀ x, and what x must obey, part by part: A x + b in a cone.

    Attributes:
        H: (n, n), symmetric and not indefinite.
        h: (n,)
        equal: Parts (A, b) with A x + b = 0.
        positive: Parts with A x + b ≥ 0.
        second_order: Parts whose first number is not less than the length of the others.
    """

    H: Array
    h: Array
    equal: list[tuple[Array, Array]] = field(default_factory=list)
    positive: list[tuple[Array, Array]] = field(default_factory=list)
    second_order: list[tuple[Array, Array]] = field(default_factory=list)

    @property
    def parts(self) -> list[tuple[Array, Array]]:
        """All parts in the order in which multipliers come."""
        return [*self.equal, *self.positive, *self.second_order]

    def with_equal(self, A: Array, b: Any = 0.0) -> None:
        """A x + b = 0 as well."""
        self.equal.append(_part(A, b))

    def with_positive(self, A: Array, b: Any = 0.0) -> None:
        """A x + b ≥ 0 as well."""
        self.positive.append(_part(A, b))

    def with_second_order(self, A: Array, b: Any = 0.0) -> None:
        """(A x + b)_0 ≥ ‖(A x + b)_1…‖ as well."""
        self.second_order.append(_part(A, b))


@dataclass(frozen=True)
class Answer:
    """x (n,), the multipliers y of each part, H x + h = Σ Aᵀ y, iterations, and whether there is no least value."""

    x: Array
    multipliers: list[Array]
    iterations: int
    unbounded: bool


def answers_of_clarabel(programme: Programme) -> Iterator[Answer]:
    """Answers of one attempt after the other: the caller knows which one is good enough."""
    clarabel, sparse = package("clarabel"), package("scipy.sparse")
    n = len(programme.h)
    A = -np.vstack([np.zeros((0, n)), *(a for a, _ in programme.parts)])
    b = np.concatenate([np.zeros(0), *(b for _, b in programme.parts)])
    cones = [clarabel.ZeroConeT(len(b)) for _, b in programme.equal]
    cones += [clarabel.NonnegativeConeT(len(b)) for _, b in programme.positive]
    cones += [clarabel.SecondOrderConeT(len(b)) for _, b in programme.second_order]
    ends = np.cumsum([len(b) for _, b in programme.parts])[:-1]
    for tolerance, regularization in _ATTEMPTS:
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.equilibrate_enable = False, False
        settings.static_regularization_constant, settings.iterative_refinement_max_iter = regularization, 50
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
        H = sparse.csc_matrix(np.triu(programme.H))
        found = clarabel.DefaultSolver(H, programme.h, sparse.csc_matrix(A), b, cones, settings).solve()
        unbounded = found.status in (clarabel.SolverStatus.DualInfeasible, clarabel.SolverStatus.AlmostDualInfeasible)
        yield Answer(np.array(found.x), np.split(np.array(found.z), ends), int(found.iterations), unbounded)


def answers_of_proxsuite(programme: Programme) -> Iterator[Answer]:
    """The one answer of a programme without second-order cones."""
    if programme.second_order:
        raise BadArgument(
            "proxsuite solves problems without friction; with friction, take method='clarabel'.", code="not-supported"
        )
    proxqp = package("proxsuite").proxqp
    n = len(programme.h)
    A, C = (np.vstack([np.zeros((0, n)), *(a for a, _ in parts)]) for parts in (programme.equal, programme.positive))
    b, d = (np.concatenate([np.zeros(0), *(b for _, b in parts)]) for parts in (programme.equal, programme.positive))
    solver = proxqp.dense.QP(n, len(b), len(d))
    solver.settings.eps_abs, solver.settings.eps_rel, solver.settings.max_iter = 1e-12, 0.0, 10_000
    solver.init(programme.H, programme.h, A, -b, C, -d, np.full(len(d), np.inf))
    solver.solve()
    found = solver.results
    multipliers = -np.concatenate([found.y, found.z])
    ends = np.cumsum([len(b) for _, b in programme.parts])[:-1]
    unbounded = found.info.status == proxqp.QPSolverOutput.PROXQP_DUAL_INFEASIBLE
    yield Answer(np.array(found.x), np.split(multipliers, ends), int(found.info.iter), unbounded)


def _part(A: Array, b: Any) -> tuple[Array, Array]:
    A = np.atleast_2d(A)
    return A, np.broadcast_to(np.asarray(b, float), (len(A),)).copy()
