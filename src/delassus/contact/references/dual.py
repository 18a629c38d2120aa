"""The dual program: the impulses that minimize ½ λᵀ (G + R) λ + gᵀ λ in their cones.

Its optimality conditions are those of the convex law "ccp", and without friction those of all laws. Clarabel, an
interior-point method, handles second-order cones; proxsuite, a proximal active-set method, only problems without
friction.

An interior-point method reaches a relative accuracy of about 1e-13 in energy, hence of 1e-7 in velocity. Beside a body
of a ton, the velocity of a body of a gram is accurate to only three or four digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from delassus.contact.cones.kinds import Free, NonNegative
from delassus.contact.references.convex_program import Answer, ConvexProgram, answers_of_clarabel, answers_of_proxsuite
from delassus.contact.solvers.registry import register_solver
from delassus.contact.systems.protocol import ENTRIES, MATRIX
from delassus.contact.systems.scaled import Scaled

REFERENCES: Final[dict[str, Callable[[ConvexProgram], Iterable[Answer]]]] = {
    "clarabel": answers_of_clarabel,
    "proxsuite": answers_of_proxsuite,
}

_INFINITE: Final = 1e100
"""Bounds beyond this count as infinite."""


@register_solver("clarabel", needs={MATRIX, ENTRIES}, traced=False)
@register_solver("proxsuite", needs={MATRIX, ENTRIES}, traced=False)
def dual_impulses(problem: Scaled, method: str, tolerance: float) -> tuple[NDArray[np.float64], int, bool]:
    """The best impulses (m,) of all attempts in the problem's units, iterations, and whether the rows are
    infeasible.
    """
    scale = float(np.max(np.abs(problem.g))) or 1.0
    program = dual_program(problem, scale)
    best, smallest, count, unbounded = np.zeros(problem.layout.m), np.inf, 0, False
    for candidate in REFERENCES[method](program):
        count += candidate.iterations
        unbounded = unbounded or candidate.unbounded
        if candidate.unbounded or not np.all(np.isfinite(candidate.x)):
            continue
        impulse = problem.project(scale * candidate.x)
        error = problem.error(impulse, problem.velocity(impulse))
        if error < smallest:
            best, smallest = impulse, error
        if error <= tolerance:
            break
    return best, count, unbounded and not smallest <= tolerance


def dual_program(problem: Scaled, scale: float) -> ConvexProgram:
    """The program of a problem whose velocities, and therefore impulses, are divided by a scale."""
    layout, unit = problem.layout, np.eye(problem.layout.m)
    program = ConvexProgram(np.asarray(problem.G), np.asarray(problem.g) / scale)
    free, half = len(layout.rows(Free)), len(layout.rows(NonNegative))
    if half:
        program.with_positive(unit[free : free + half])
    for j, row in enumerate(unit[free + half : layout.scalars]):
        lower, upper = float(problem.lower[j]), float(problem.upper[j])
        if lower == upper:
            program.with_equal(row, -lower / scale)
            continue
        if lower > -_INFINITE:
            program.with_positive(row, -lower / scale)
        if upper < _INFINITE:
            program.with_positive(-row, upper / scale)
    for at, mu in zip(layout.blocks, np.asarray(problem.friction), strict=True):
        tangents, normal = unit[at][:-1], unit[at][-1:]
        if mu > 0.0:
            share = 1.0 / max(1.0, float(mu))
            program.with_second_order(np.vstack([mu * share * normal, share * tangents]))
        else:
            program.with_equal(tangents)
            program.with_positive(normal)
    return program
