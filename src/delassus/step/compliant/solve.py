"""Solves (J W⁻¹ Jᵀ + R) λ + b + J v_f = 0 for bilateral rows, and the complementarity problem for unilateral ones.

The Schur complement of the KKT matrix [W, -Jᵀ; -J, -R]: positive definite but for rows that repeat each other.
Contacts, limits and dry friction go to the contact solver. Bilateral rows are solved at once, in units of their own
response, as a `FilteredSystem`: G + R may have any rank, since rows of loops repeat each other, and robots pass
singular poses. Its part c of b is that outside the range of G + R, the part that no impulse reaches.

Where J is taken off the manifold, by a share δ of the robot's size, rows that repeat each other seem to be independent,
with σ of the order of δ²: to believe them would lock the robot. So ε is at least a multiple of δ². What rows leave then
is no failure, either, as long as it is a share δ of the velocities that cancel in them.

Beside contacts, and by methods that need rows which agree, b - c is solved for. What is reported is measured on the
rows as they were stated: the residual has c in it, and the status says where rows contradict each other.
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
"""Largest residual of a row that counts as met, as a fraction of the velocities in it, by precision."""

_RANK: Final = {"float64": 1e-11, "float32": 1e-5}
"""The least ε, by precision, where the response of a row to itself is one."""

_CURVED: Final = 1e3
"""ε over the square of δ: eigenvalues that an error δ of J makes nonzero are well below ε."""

_ROUGH: Final = 1e-6
"""The largest ε: rows that are independent are well above, and met to all digits, however far off the robot is."""

_LOOSE: Final = 16.0
"""Largest residual of rows over δ, as a fraction of the velocities in them; at most a tenth."""


def solve_rows(
    scene: Scene, G: Any, g: Any, R: Any, accuracy: RowAccuracy, cones: ConeInputs, method: str = "auto"
) -> RowSolution:
    """G = J W⁻¹ Jᵀ (m, m), g = J v_f + b (m,), R (m,)."""
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
    """A solution of rows that agree, with the residual and the status of the rows g (m,), R (m,) that were stated."""
    parameters = cones.rows._replace(compliance=R)
    _, residual = velocity_and_residual(scene.layout, "ncp", G, g, solution.impulse, parameters)
    met = solution.status == float(Status.CONVERGED)
    status = np.where(met & contradict, float(Status.LEAST_SQUARES), solution.status)
    return solution._replace(residual=residual, status=status)


def is_bilateral(scene: Scene) -> bool:
    """Whether all rows act in both directions, without bounds."""
    return all(isinstance(cone, Free) for cone in scene.layout.cones)


def solve_bilateral(G: Any, g: Any, R: Any, accuracy: RowAccuracy) -> RowSolution:
    """The smallest impulses that rows are met with, or come nearest to it."""
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
    """What rows (m,) may leave and still count as met, where they ask for b (m,) in their units (m,)."""
    moving = np.max(unit * accuracy.reach)
    share = _LEFT[computing_in().name] * np.maximum(moving, np.max(np.abs(b)))
    return (share + np.minimum(_LOOSE * accuracy.deviation, 0.1) * moving) / unit + accuracy.slack


class Scaled(NamedTuple):
    """A x = b in units of the rows' own responses: A (m, m) and ε, b (m,), the units (m,)."""

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
    """g (m,), R (m,), and whether the rows that they come from contradict each other; None if there are none."""

    g: Any
    R: Any
    contradict: Any


def filter_rows(scene: Scene, G: Any, g: Any, R: Any, accuracy: RowAccuracy) -> FilteredRows:
    """g (m,) without what no impulse of the bilateral rows reaches, and R (m,) with ε where there is some of that.

    Rows of loops come to a solver as rows that agree, and that no longer seem to be independent.
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
    """What rows answer with (m,): their own R, and the largest response in their group; one where nothing moves.

    Beside rows of its group, a row that cannot move in a singular pose is told from one that does.
    """
    members = {group: [k for k, other in enumerate(groups) if other == group] for group in dict.fromkeys(groups)}
    largest = {group: np.max(np.stack([G[k, k] for k in own])) for group, own in members.items()}
    result = np.stack([largest[group] for group in groups]) + R
    return np.where(result > 0.0, result, 1.0)
