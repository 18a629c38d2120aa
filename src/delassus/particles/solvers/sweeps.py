"""Gauss-Seidel on rows: on the Schur complement, or on velocities, color by color.

Elements of one color share no particle, so their rows are decoupled, and all elements of a color are processed at once,
in SIMD lanes. A sweep costs as much as a product with J. It converges like Gauss–Seidel: fast for contacts and short
chains, slow for long ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from delassus.compiler.host.kernel import kernel
from delassus.errors import BadArgument
from delassus.particles.description.kinds import ElementKind
from delassus.particles.solvers.coloring import colors
from delassus.particles.solvers.response import Response
from delassus.particles.solvers.system import RowSolution, System, solve_status

Array = NDArray[np.float64]


class SweepError(BadArgument):
    """A system that sweeps cannot solve."""


@kernel("(k3),(m,k3),(m,k3),(m),(m),(m,m),(m)->(k3),(m)")
def element_sweep(
    kind: ElementKind, v: Any, rows: Any, towards: Any, R: Any, b: Any, inverse: Any, impulse: Any
) -> tuple[Any, Any]:
    """Update one element: velocities (k3,) of its points and its impulses (m,)."""
    change = inverse @ -(rows @ v + R * impulse + b)
    return v + change @ towards, impulse + change


def by_impulses(system: System, v: Array, impulse: Array, tolerance: float, iterations: int) -> RowSolution:
    """Sequential impulses: velocities are kept up to date, the Schur complement is not formed."""
    response = by_blocks(system)
    v = response.free(v) + response.solve(system.JT @ impulse)
    v, impulse = v.reshape(-1, 3), np.array(impulse)
    work = element_work(system, response)
    best, least, sweep = (v.reshape(-1).copy(), impulse.copy()), np.inf, 0
    for sweep in range(1, iterations + 1):
        sweep_elements(work, v, impulse)
        if sweep % 5 == 0 or sweep == iterations:
            error = system.error(v.reshape(-1), impulse)
            if error < least:
                best, least = (v.reshape(-1).copy(), impulse.copy()), error
            if error <= tolerance or not np.isfinite(error):
                break
    return RowSolution(*best, least, sweep, solve_status(least, tolerance))


def element_work(system: System, response: Response) -> list[Any]:
    """The data of a sweep by color: the type, the points, parameters, and indices of impulses."""
    work = []
    for (_, group, at), rows in zip(system.structure.rows.groups, system.structure.rows.blocks(system.J), strict=True):
        kind = group.kind
        J = rows.reshape(-1, kind.rows, 3 * kind.points)
        blocks = response.inverse[group.points]
        towards = np.einsum("emaj,eajk->emak", J.reshape(-1, kind.rows, kind.points, 3), blocks).reshape(J.shape)
        R = system.R[at].reshape(-1, kind.rows)
        D = np.einsum("emi,eni->emn", towards, J) + R[:, :, None] * np.eye(kind.rows)
        dead = np.einsum("emm->em", D) == 0.0
        D[dead] += np.eye(kind.rows)[np.nonzero(dead)[1]]
        inverse = np.linalg.inv(D)
        b = system.b[at].reshape(-1, kind.rows)
        for color in colors(group.points, system.structure.particles.nodes):
            where = at.start + kind.rows * color[:, None] + np.arange(kind.rows)
            parameters = (J[color], towards[color], R[color], b[color], inverse[color])
            work.append((kind, group.points[color], parameters, where))
    return work


def sweep_elements(work: list[Any], v: Array, impulse: Array) -> None:
    """One sweep over all elements, of velocities (nodes, 3) and impulses (m,) in place."""
    for kind, points, parameters, where in work:
        before = v[points].reshape(len(points), -1)
        after, impulse[where] = element_sweep(kind, before, *parameters, impulse[where])
        v[points] = after.reshape(len(points), -1, 3)


def by_gauss_seidel(system: System, v: Array, impulse: Array, tolerance: float, iterations: int) -> RowSolution:
    """Row by row on the explicit Schur complement; rows of one color are decoupled in it."""
    response = by_blocks(system)
    free = response.free(v)
    n = len(response.inverse)
    light = sparse.bsr_matrix((response.inverse, np.arange(n), np.arange(n + 1)), shape=(3 * n, 3 * n))
    S = (system.J @ light @ system.JT + sparse.diags(system.R)).tocsr()
    g = system.b + system.J @ free
    diagonal = S.diagonal()
    unit = 1.0 / np.where(diagonal > 0.0, diagonal, 1.0)
    row_colors = _row_colors(system)
    parts = [(rows, S[rows]) for rows in row_colors]
    x = np.array(impulse)
    best, least, sweep = x.copy(), np.inf, 0
    for sweep in range(1, iterations + 1):
        for rows, own in parts:
            x[rows] -= unit[rows] * (own @ x + g[rows])
        if sweep % 5 == 0 or sweep == iterations:
            error = system.unmet(S @ x + g)
            if error < least:
                best, least = x.copy(), error
            if error <= tolerance or not np.isfinite(error):
                break
    after = free + response.solve(system.JT @ best)
    error = system.error(after, best)
    return RowSolution(after, best, error, sweep, solve_status(error, tolerance))


def _row_colors(system: System) -> list[NDArray[np.int64]]:
    """Rows that do not share a particle, color by color; those of one element have colors of their own."""
    groups = []
    for _, group, at in system.structure.rows.groups:
        for color in colors(group.points, system.structure.particles.nodes):
            groups += [at.start + group.kind.rows * color + k for k in range(group.kind.rows)]
    return groups


def by_blocks(system: System) -> Response:
    """W⁻¹ of a system with block diagonal W; raises an error for others."""
    response = Response(system, factored=False)
    if system.stiff is not None:
        raise SweepError(
            "W has stiffness of energies or rotating forces, but sweeps need it block diagonal: define elements as "
            "deformations, omit geometric_stiffness, or use the method 'cholesky'.",
            code="not-supported",
        )
    return response
