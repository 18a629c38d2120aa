"""Solves contact problems with friction pyramids; decides which are compiled."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.constrained.rows.counts import as_integer
from delassus.contact.cones.kinds import NonNegative
from delassus.contact.cones.pyramid import face_angles
from delassus.contact.problems.checks import ContactProblemError
from delassus.contact.problems.data import ContactData
from delassus.contact.problems.solution import ContactSolution
from delassus.contact.solvers.registry import find_solver
from delassus.contact.solvers.solve_pyramids import PYRAMID_SYSTEM, solve_pyramids

_LARGEST_COMPILED: Final = 24
"""Maximum number of variables (four contacts with four faces) of compiled problems. Compilation then takes five
seconds, and grows with the square; a larger problem takes NumPy about ten milliseconds.
"""


def solve_by_pyramids(
    problem: ContactData, method: str, tolerance: float, iterations: int, faces: int, pyramid: str
) -> ContactSolution:
    """Solve the linear complementarity problem with K faces, inside or around the cones."""
    layout = problem.layout
    find_solver(method, PYRAMID_SYSTEM, "lcp")
    face_angles(faces, pyramid)
    if layout.torsional:
        raise ContactProblemError(
            "law 'lcp' needs contacts of three rows; for torsional and rolling friction use law 'ncp' or 'ccp'.",
            code="not-supported",
        )
    if method == "dantzig" and problem.friction is not None and np.any(problem.friction > 0.0):
        raise ContactProblemError(
            "method 'dantzig' solves problems without friction; with friction, use 'lemke'.", code="not-supported"
        )
    options: dict[str, Any] = {"faces": int(faces), "pyramid": pyramid, "method": method}
    inputs: dict[str, Any] = {**problem.numbers, "tolerance": float(tolerance), "iterations": float(iterations)}
    variables = len(layout.rows(NonNegative)) + 4 * layout.intervals + (faces + 2) * layout.contacts
    if variables > _LARGEST_COMPILED:
        results = _one_by_one(problem, inputs, options)
    else:
        results = solve_pyramids(layout, problem.G, problem.g, **inputs, **options)
    impulse, velocity, residuals, count, status = results
    return ContactSolution(
        problem, "lcp", impulse, velocity, residuals, as_integer(count), as_integer(status), (int(faces), pyramid)
    )


def _one_by_one(problem: ContactData, inputs: dict[str, Any], options: dict[str, Any]) -> list[NDArray[np.float64]]:
    limits = {name: inputs[name] for name in ("tolerance", "iterations")}
    results = []
    for at in np.ndindex(*problem.batch):
        one = problem[at] if problem.batch else problem
        results.append(solve_pyramids.python(one.layout, one.G, one.g, **one.numbers, **limits, **options))
    if not results:
        rows, none = np.zeros((*problem.batch, problem.m)), np.zeros(problem.batch)
        return [rows, rows, rows, none, none]
    return [np.reshape(np.array(x), (*problem.batch, *np.shape(x[0]))) for x in zip(*results, strict=True)]
