"""The Popov–Vereshchagin algorithm with early elimination: exact, O(n + m), no Delassus matrix and no iterations.

Solves M a + c = tau + Jᵀ λ, J a + γ = 0. Inward, rows K a + l = 0 are propagated as in `prox_pv`, and every direction S
of a joint eliminates one of them. With s = K S, a reflection Q maps s to a multiple of the first unit vector, so that
only one row depends on the joint:

    K' = Q (K - s Uᵀ/D),   l' = Q (l + s u/D),   σ = sᵀs/D,
    λ'_1 = -(K'_1 a + l'_1)/σ,   A ← A - U Uᵀ/D + K'_1ᵀ K'_1/σ,   p ← p + U u/D + K'_1ᵀ l'_1/σ.

If more than six rows meet on a link, six equivalent combinations replace them (a QR factorization). The directions of a
joint with several of them are eliminated one by one.

A direction that does not move the rows (s = 0) eliminates none, and they are passed on. All operations on rows are
orthogonal. If joints eliminate fewer rows than there are, those left at the base are solved in the least-squares sense
with the smallest forces, and the status is RANK_LOSS.

Whether s counts as zero is a matter of accuracy (`early_elimination`): in the worst states, accelerations have seven
digits. Choose it for exact solutions without iterations at any rank; `caba` takes two thirds of its time for three
iterations. In single precision choose `prox_pv`: states that lose nine digits lose all.

Reference: A. Sathya, H. Bruyninckx, W. Decré, G. Pipeleers, Efficient constrained dynamics algorithms based on an
equivalent LQR formulation using Gauss' principle of least constraint (2023).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.delassus.scales import row_mobilities
from delassus.constrained.elimination.early_elimination import (
    MOST,
    Direction,
    Reflection,
    TravellingRows,
    eliminate,
    entering,
    fold,
)
from delassus.constrained.rows.inputs import TIME, per_row
from delassus.constrained.rows.problem import Problem
from delassus.constrained.solvers.status import Status
from delassus.constraints.mechanism.mechanism import Mechanism, refuse_unilateral
from delassus.constraints.mechanism.rows import RowTargets, against_gravity
from delassus.dynamics.forces.aba import aba
from delassus.dynamics.tree.poses import Blocks
from delassus.dynamics.tree.recursion import bias_force
from delassus.dynamics.tree.sweep import propagate_acceleration, rigid_blocks, world_acceleration
from delassus.errors import BadArgument
from delassus.model.parts import WORLD


@kernel("(nq),(nv),(nv)->(nv),(m),()", inputs={"acceleration": per_row("acceleration"), "time": TIME})
def pv_early(
    mechanism: Mechanism, q: Traced, v: Traced, tau: Traced, *, acceleration: Traced = None, time: Traced = None
) -> tuple[Floats, Floats, Floats]:
    """Accelerations (nv,) [rad/s², m/s²], constraint forces λ (m,) [N, N·m], and a value of `Status`.

    Args:
        mechanism: The robot and its constraints, without compliance.
        q: Configuration (nq,) [rad, m].
        v: Velocity (nv,) [rad/s, m/s].
        tau: Generalized forces (nv,) [N·m, N].
        acceleration: (m,) target accelerations of the rows (input at run time).
        time: () [s] time of moving references, required if there are any (input at run time).

    >>> arm = dl.load("double_pendulum")
    >>> sliding = dl.Mechanism(arm, dl.Point("tip", rows="x"))
    >>> a, force, status = dl.pv_early(sliding, [0.1, 0.2], np.zeros(2), np.zeros(2))
    >>> a.shape, force.shape
    ((2,), (1,))
    """
    refuse_unilateral(mechanism, "constrained dynamics")
    if not mechanism.m:
        return aba(mechanism.model, q, v, tau), np.zeros(0), np.array(float(Status.CONVERGED))
    problem = Problem.of(mechanism, q, v, tau, time=time, targets=RowTargets(acceleration))
    _check(problem)
    weight = 1.0 / numpy.sqrt(row_mobilities(mechanism))  # mobility of at most 1 (see `proximal`)
    visits, eliminated = _inward(problem, weight)
    a, force = _outward(problem, visits)
    force = weight * force
    finite = np.isfinite(np.sum(a) + np.sum(force))
    status = np.where(eliminated < mechanism.m - 0.5, float(Status.RANK_LOSS), float(Status.CONVERGED))
    return a, force, np.where(finite, status, float(Status.NOT_FINITE))


@dataclass(frozen=True)
class _Visit:
    """A visited link: the reflections that reduced `before` rows to six, its own rows, and its directions.

    The rows are those of its children, in order, then its own.
    """

    folds: list[Reflection]
    before: int
    children: list[tuple[int, int]]
    own: tuple[int, ...]
    directions: list[Direction]


def _inward(problem: Problem, weight: NDArray[numpy.float64]) -> tuple[list[_Visit], Any]:
    """From the leaves to the base; also returns the number of eliminated rows."""
    motions, links = problem.motions, problem.motions.tree.links
    l = -weight * against_gravity(problem.rows, motions, problem.k)
    A = [_assemble_blocks(rigid_blocks(link)) for link in links]
    p = [np.concatenate(bias_force(link, *motions.velocity[i])) for i, link in enumerate(links)]
    waiting: list[list[tuple[int, TravellingRows]]] = [[] for _ in links]
    visits: list[Any] = [None] * len(links)
    eliminated = np.array(0.0)
    for i, link in reversed(list(enumerate(links))):
        link_rows = problem.rows.links.get(i)
        parts = [rows for _, rows in waiting[i]]
        if link_rows is not None:
            indices = list(link_rows.rows)
            parts.append(entering(weight[indices, None] * link_rows.K, l[indices]))
        children = [(child, len(rows.used)) for child, rows in waiting[i]]
        before = sum(len(rows.used) for rows in parts)
        folds: list[Reflection] = []
        if before > MOST:
            folded, folds = fold(sum(parts[1:], parts[0]))
            parts = [folded]
        rows = sum(parts[1:], parts[0]) if parts else None
        directions = []
        for k in reversed(range(link.motion.nv)):
            driven = [(dof.row, weight[dof.row] * dof.factor) for dof in problem.rows.of_joint(i) if dof.k == k]
            for row, _ in driven:
                new = entering(np.zeros((1, 6)), l[row : row + 1])
                rows = rows + new if rows else new
            direction, A[i], p[i], rows = eliminate(link, k, A[i], p[i], problem.tau[link.v + k], rows, driven)
            directions.append(direction)
            if direction.taken:
                eliminated = eliminated + np.where(direction.taken.vanished, 0.0, 1.0)
        visits[i] = _Visit(folds, before, children, link_rows.rows if link_rows else (), directions)
        if link.parent < 0:
            continue
        b, pose = np.concatenate(motions.product[i]), motions.poses[i]
        f, n = p[i][:3] + A[i][:3] @ b, p[i][3:] + A[i][3:] @ b
        p[link.parent] = p[link.parent] + np.concatenate(pose.force_to_parent(f, n))
        A[link.parent] = A[link.parent] + _assemble_blocks(
            pose.inertia_to_parent(A[i][:3, :3], A[i][:3, 3:], A[i][3:, 3:])
        )
        if rows:
            K = np.stack([np.concatenate(pose.force_to_parent(row[:3], row[3:])) for row in rows.K])
            waiting[link.parent].append((i, TravellingRows(K, rows.l + rows.K @ b, rows.used)))
    return visits, eliminated


def _outward(problem: Problem, visits: list[_Visit]) -> tuple[Any, Any]:
    """From the base to the leaves: accelerations (nv,), and the rows' forces (m,)."""
    motions, links = problem.motions, problem.motions.tree.links
    a, force = np.zeros(problem.model.nv), np.zeros(problem.rows.m)
    motion: dict[int, Any] = {WORLD: world_acceleration(motions.tree)}
    passed_forces: dict[int, Any] = {}  # forces of the rows that a link passed to its parent
    for i, (link, visit) in enumerate(zip(links, visits, strict=True)):
        now = np.concatenate(propagate_acceleration(motions.poses[i], motion[link.parent], motions.product[i]))
        rows: Any = passed_forces.get(i)
        for direction in reversed(visit.directions):
            push = direction.u - direction.U @ now
            if direction.taken is not None:
                t, row_count = direction.taken, len(direction.driven)
                rows = np.zeros(len(t.s)) if rows is None else np.array(rows)  # at the base, all were eliminated
                rows[t.pivot] = np.where(t.vanished, rows[t.pivot], -(t.K @ now + t.l) * t.inverse)
                rows = t.Q(rows)
                push = push + t.s @ rows
                for j, row in enumerate(direction.driven):
                    force[row] = rows[len(rows) - row_count + j]
                rows = rows[: len(rows) - row_count]
            a[direction.v] = direction.inverse * push
            now = now + direction.S * a[direction.v]
        motion[i] = (now[:3], now[3:])
        if visit.folds:
            rows = np.concatenate([rows, np.zeros(visit.before - MOST)])
            for Q in reversed(visit.folds):
                rows = Q(rows)
        at = 0
        for child, row_count in visit.children:
            passed_forces[child], at = rows[at : at + row_count], at + row_count
        for j, row in enumerate(visit.own):
            force[row] = rows[at + j]
    return a, force


def _assemble_blocks(blocks: Blocks) -> Any:
    """An inertia (6, 6) from its blocks."""
    M, H, I = blocks
    return np.concatenate([np.concatenate([M, H], 1), np.concatenate([H.T, I], 1)])


def _check(problem: Problem) -> None:
    """Raise an error if this recursion does not support the mechanism."""
    tree = problem.motions.tree
    if tree.mimics:
        raise BadArgument(
            f"joints of {problem.model.name!r} share coordinates (mimic joints), so there is no recursion over its "
            "tree: use prox_ltl or three_steps.",
            code="not-supported",
        )
    if np.any(problem.rows.compliance != 0.0):
        raise BadArgument(
            f"the constraints have compliance, up to {problem.rows.compliance.max():g}, and pv_early solves rows "
            "exactly; use prox_pv or caba.",
            code="not-supported",
        )
    if problem.rows.layout.pairs or problem.rows.tied:
        raise BadArgument(
            f"constraints of {problem.model.name!r} couple its bodies or joints, and pv_early "
            "supports only constraints with the world; use prox_pv.",
            code="not-supported",
        )
