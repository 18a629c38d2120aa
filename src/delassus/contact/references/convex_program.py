"""Convex programs min ½ xᵀ H x + hᵀ x with cones, and the packages that solve them one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.contact.references.packages import package, solve_by_clarabel, solve_by_proxsuite
from delassus.errors import BadArgument

Array = NDArray[np.float64]

_ATTEMPTS: Final = ((1e-14, 1e-12), (1e-13, 1e-10), (1e-12, 1e-10), (1e-12, 1e-8), (1e-10, 1e-8))
"""Tolerances and regularizations for clarabel: on singular problems a tight tolerance can fail where a loose one
succeeds.
"""


@dataclass
class ConvexProgram:
    """min ½ xᵀ H x + hᵀ x with constraints A x + b in a cone, one part for each cone.

    Attributes:
        H: (n, n), symmetric and positive semidefinite.
        h: (n,)
        equal: Parts (A, b) with A x + b = 0.
        positive: Parts with A x + b ≥ 0.
        second_order: Parts whose first entry is at least the norm of the others.
    """

    H: Array
    h: Array
    equal: list[tuple[Array, Array]] = field(default_factory=list)
    positive: list[tuple[Array, Array]] = field(default_factory=list)
    second_order: list[tuple[Array, Array]] = field(default_factory=list)

    @property
    def parts(self) -> list[tuple[Array, Array]]:
        """All parts, in the order of their multipliers."""
        return [*self.equal, *self.positive, *self.second_order]

    def with_equal(self, A: Array, b: Any = 0.0) -> None:
        """Add A x + b = 0."""
        self.equal.append(_part(A, b))

    def with_positive(self, A: Array, b: Any = 0.0) -> None:
        """Add A x + b ≥ 0."""
        self.positive.append(_part(A, b))

    def with_second_order(self, A: Array, b: Any = 0.0) -> None:
        """Add (A x + b)_0 ≥ ‖(A x + b)_1…‖."""
        self.second_order.append(_part(A, b))


@dataclass(frozen=True)
class Answer:
    """x (n,), the multipliers y of each part, H x + h = Σ Aᵀ y, iterations, and whether the program is unbounded."""

    x: Array
    multipliers: list[Array]
    iterations: int
    unbounded: bool


def answers_of_clarabel(program: ConvexProgram) -> Iterator[Answer]:
    """Solutions of successive attempts; the caller decides which is accurate enough."""
    statuses = package("clarabel").SolverStatus
    A, b = _stack(program, program.parts)
    cones = [("Zero", len(b)) for _, b in program.equal]
    cones += [("Nonnegative", len(b)) for _, b in program.positive]
    cones += [("SecondOrder", len(b)) for _, b in program.second_order]
    for tolerance, regularization in _ATTEMPTS:
        result = solve_by_clarabel(
            program.H,
            program.h,
            -A,
            b,
            cones,
            tolerance,
            equilibrate_enable=False,
            static_regularization_constant=regularization,
            iterative_refinement_max_iter=50,
        )
        unbounded = result.status in (statuses.DualInfeasible, statuses.AlmostDualInfeasible)
        yield Answer(
            np.array(result.x), _split_multipliers(program, np.array(result.z)), int(result.iterations), unbounded
        )


def answers_of_proxsuite(program: ConvexProgram) -> Iterator[Answer]:
    """The solution of a program without second-order cones; a single attempt."""
    if program.second_order:
        raise BadArgument(
            "proxsuite solves problems without friction; with friction, use method='clarabel'.", code="not-supported"
        )
    (A, b), (C, d) = _stack(program, program.equal), _stack(program, program.positive)
    bounds = (C, -d, np.full(len(d), np.inf))
    result = solve_by_proxsuite(program.H, program.h, (A, -b), bounds, tolerance=1e-12, iterations=10_000)
    unbounded = result.info.status == package("proxsuite").proxqp.QPSolverOutput.PROXQP_DUAL_INFEASIBLE
    multipliers = _split_multipliers(program, -np.concatenate([result.y, result.z]))
    yield Answer(np.array(result.x), multipliers, int(result.info.iter), unbounded)


def _stack(program: ConvexProgram, parts: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """A (rows, n) and b (rows,) of several parts, stacked."""
    A = np.vstack([np.zeros((0, len(program.h))), *(a for a, _ in parts)])
    return A, np.concatenate([np.zeros(0), *(b for _, b in parts)])


def _split_multipliers(program: ConvexProgram, multipliers: Array) -> list[Array]:
    """The multipliers of each part."""
    return np.split(multipliers, np.cumsum([len(b) for _, b in program.parts])[:-1])


def _part(A: Array, b: Any) -> tuple[Array, Array]:
    A = np.atleast_2d(A)
    return A, np.broadcast_to(np.asarray(b, float), (len(A),)).copy()
