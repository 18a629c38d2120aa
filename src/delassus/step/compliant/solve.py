"""Solves (J W⁻¹ Jᵀ + R) λ + b + J v_f = 0 for bilateral rows, and the complementarity problem for unilateral ones.

G + R = J W⁻¹ Jᵀ + R is the Schur complement of the KKT matrix [W, -Jᵀ; -J, -R]; it is positive definite unless rows are
redundant. If all rows are bilateral, they are solved directly as a `FilteredSystem`, in units of their own response.
The matrix may have any rank, since rows of loops may be redundant and poses may be singular. Let c be the part of b
outside its range, which no impulse can change. Contacts, limits and joint friction are solved by the contact solver.

If J is evaluated at a distance δ from the constraint manifold, relative to the robot's size, redundant rows appear to
be independent, with eigenvalues of the order δ². Treating them as independent would lock the robot, so ε is at least a
multiple of δ². A residual up to a fraction δ of the terms that cancel in a row then counts as converged.

With contacts, and for methods that need consistent rows, the system is solved with b - c. The reported residual is that
of the original rows, so it includes c, and the status tells whether rows contradict each other.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.trace import computing_in
from delassus.constrained.solvers.status import Status
from delassus.contact.cones.kinds import Free
from delassus.contact.solvers.solve import solve_contacts, velocity_and_residual
from delassus.linalg.filtered_system import FilteredSystem
from delassus.step.compliant.types import ConeInputs, RowAccuracy, RowSolution
from delassus.step.scene import Scene

_LEFT: Final = {"float64": 1e-9, "float32": 1e-4}
"""Largest residual of a row that counts as converged, as a fraction of the terms that cancel in it, by precision."""

_RANK: Final = {"float64": 1e-11, "float32": 1e-5}
"""Smallest ε by precision, in units in which the diagonal of G + R is one."""

_CURVED: Final = 1e3
"""ε/δ²: eigenvalues that are nonzero only because of an error δ of J are well below ε."""

_ROUGH: Final = 1e-6
"""Largest ε: the eigenvalues of independent rows are well above it, so these are solved to all digits for any δ."""

_LOOSE: Final = 16.0
"""Largest residual that counts as converged, as a fraction of the terms that cancel in a row, divided by δ; the
fraction is at most a tenth."""


def solve_rows(
    scene: Scene, G: Any, g: Any, R: Any, accuracy: RowAccuracy, cones: ConeInputs, method: str = "auto"
) -> RowSolution:
    """Row impulses for G = J W⁻¹ Jᵀ (m, m), g = J v_f + b (m,) and R (m,), by a contact solver or a direct solve."""
    if is_bilateral(scene) and method == "auto":
        return solve_bilateral(G, g, R, accuracy)
    rows = filter_rows(scene, G, g, R, accuracy)
    parameters = cones.rows._replace(compliance=rows.R)
    impulse, _, residual, count, status = solve_contacts(
        scene.layout, G, rows.g, rows=parameters, solver=cones.solver, method=method
    )
    solution = RowSolution(impulse, residual, count, status)
    return solution if rows.contradict is None else measure_residual(scene, G, g, R, cones, solution, rows.contradict)


def measure_residual(
    scene: Scene, G: Any, g: Any, R: Any, cones: ConeInputs, solution: RowSolution, contradict: Any
) -> RowSolution:
    """The solution of the filtered rows, with the residual and status of the original rows g (m,), R (m,)."""
    parameters = cones.rows._replace(compliance=R)
    _, residual = velocity_and_residual(scene.layout, "ncp", G, g, solution.impulse, parameters)
    met = solution.status == float(Status.CONVERGED)
    status = np.where(met & contradict, float(Status.LEAST_SQUARES), solution.status)
    return solution._replace(residual=residual, status=status)


def is_bilateral(scene: Scene) -> bool:
    """Whether all rows are bilateral and without bounds."""
    return all(isinstance(cone, Free) for cone in scene.layout.cones)


def solve_bilateral(G: Any, g: Any, R: Any, accuracy: RowAccuracy) -> RowSolution:
    """The least-squares solution λ of (G + R) λ = -g with the smallest norm."""
    if not len(g):
        return RowSolution(np.zeros(0), np.zeros(0), np.array(0.0), np.array(float(Status.CONVERGED)))
    system, b, unit = _scaled(G, g, R, accuracy)
    impulse = unit * system.solve(b)
    left = G @ impulse + R * impulse + g
    met = np.all(np.abs(left) <= _allowed(b, unit, accuracy))
    status = np.where(met, float(Status.CONVERGED), float(Status.LEAST_SQUARES))
    finite = np.isfinite(np.sum(impulse) + np.sum(left))
    return RowSolution(impulse, left, np.array(1.0), np.where(finite, status, float(Status.NOT_FINITE)))


def _allowed(b: Any, unit: Any, accuracy: RowAccuracy) -> Any:
    """The largest residual (m,) that counts as converged, for rows with right-hand side b (m,) in units (m,)."""
    moving = np.max(unit * accuracy.reach)
    share = _LEFT[computing_in().name] * np.maximum(moving, np.max(np.abs(b)))
    return (share + np.minimum(_LOOSE * accuracy.deviation, 0.1) * moving) / unit + accuracy.slack


class Scaled(NamedTuple):
    """A x = b in units of the rows' own responses: A (m, m) with its ε, b (m,), and the units (m,)."""

    system: FilteredSystem
    b: Any
    unit: Any


def _scaled(G: Any, g: Any, R: Any, accuracy: RowAccuracy) -> Scaled:
    m, least = len(g), _RANK[computing_in().name]
    unit = 1.0 / np.sqrt(_responses(G, R, accuracy.groups or tuple(range(m))))
    A = (G + np.diag(R)) * (unit[:, None] * unit[None, :])
    epsilon = np.clip(_CURVED * accuracy.deviation * accuracy.deviation, least, max(_ROUGH, least))
    return Scaled(FilteredSystem.of(A, epsilon), -unit * g, unit)


class FilteredRows(NamedTuple):
    """g (m,) and R (m,) of consistent rows, and whether the original rows contradict each other (None if no row is
    bilateral)."""

    g: Any
    R: Any
    contradict: Any


def filter_rows(scene: Scene, G: Any, g: Any, R: Any, accuracy: RowAccuracy) -> FilteredRows:
    """g (m,) without the part that no impulse of the bilateral rows can change, and R (m,) with ε if there is one.

    The rows of loops are then consistent, and redundant ones do not appear to be independent.
    """
    at = scene.bilateral
    if at.start == at.stop:
        return FilteredRows(g, R, None)
    own = RowAccuracy(accuracy.reach[at], accuracy.deviation, accuracy.slack[at], accuracy.groups[at])
    system, b, unit = _scaled(G[at, at], g[at], R[at], own)
    left = system.unreachable(b)
    loose = np.max(np.abs(left)) > 1e-10 * np.max(np.abs(b))
    contradict = np.any(np.abs(left) / unit > _allowed(b, unit, own))
    g, R = np.array(g), np.array(R)
    g[at], R[at] = g[at] + left / unit, R[at] + np.where(loose, system.epsilon, 0.0) / (unit * unit)
    return FilteredRows(g, R, contradict)


def _responses(G: Any, R: Any, groups: tuple[Any, ...]) -> Any:
    """The scale of each row (m,): its own R plus the largest response in its group; 1 if that is zero.

    The scale of a group makes a row that cannot move in a singular pose small in comparison with the others.
    """
    members = {group: [k for k, other in enumerate(groups) if other == group] for group in dict.fromkeys(groups)}
    largest = {group: np.max(np.stack([G[k, k] for k in own])) for group, own in members.items()}
    result = np.stack([largest[group] for group in groups]) + R
    return np.where(result > 0.0, result, 1.0)
