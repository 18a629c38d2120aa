"""The Popov–Vereshchagin algorithm with early elimination: exact, O(n + m), no Delassus matrix and no iterations.

Solves M a + c = tau + Jᵀ λ, J a + γ = 0. Inward, rows K a + l = 0 travel as in `prox_pv`, and every direction S of a
joint takes one of them away. With s = K S, a reflection Q turns s into its first component alone, so that one row sees
the joint and the others do not:

    K' = Q (K - s Uᵀ/D),   l' = Q (l + s u/D),   σ = sᵀs/D,
    λ'_1 = -(K'_1 a + l'_1)/σ,   A ← A - U Uᵀ/D + K'_1ᵀ K'_1/σ,   p ← p + U u/D + K'_1ᵀ l'_1/σ.

A link that has more than six rows to bear keeps six combinations that say the same (a QR factorisation). Joints of
several directions are taken one direction after the other.

A direction that does not move the rows (s = 0) takes none away, and they travel on. All that is done to rows is
orthogonal: where joints take away fewer rows than there are, what is left at the base is met as well as possible in the
least-squares sense, and the forces are the smallest that do it. The status says RANK_LOSS then.

What s is zero is a matter of digits (`_VANISHED`): in the worst of states, accelerations keep eight. Choose pv_early
where exact answers are wanted at once, in any rank; `caba` takes two thirds of the time for three iterations.

Reference: A. Sathya, H. Bruyninckx, W. Decré, G. Pipeleers, Efficient constrained dynamics algorithms based on an
equivalent LQR formulation using Gauss' principle of least constraint (2023).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import delassus.numpy as np
from delassus.compiler.kernel import kernel
from delassus.constrained.articulated_tree import check_single
from delassus.constrained.status import Status
from delassus.constrained.task import Task, task_of
from delassus.constraints.mechanism import Mechanism
from delassus.constraints.rows import DofRow, shifted
from delassus.dynamics.aba import aba
from delassus.dynamics.poses import Blocks, rigid_blocks
from delassus.dynamics.recursion import bias_force
from delassus.errors import DelassusError
from delassus.model.joints import Motion
from delassus.model.links import Link

_VANISHED: Final = 1e-8
"""sᵀs below this share of the largest squared row counts as zero. Taking a row away costs 1e-16/share of its digits,
leaving it the share itself."""
_MOST: Final = 6
"""The rows on a link that can be independent."""


@kernel("(nq),(nv),(nv)->(nv),(m),()", inputs={"acceleration": "(m)"})
def pv_early(mechanism: Mechanism, q: Any, v: Any, tau: Any, *, acceleration: Any = None) -> Any:
    """Accelerations (nv,) [rad/s², m/s²], constraint forces λ (m,) [N, N·m], and the number of a `Status`.

    Args:
        mechanism: The robot and its constraints, without compliance.
        q: Configuration (nq,) [rad, m].
        v: Velocity (nv,) [rad/s, m/s].
        tau: Generalised forces (nv,) [N·m, N].
        acceleration: (m,) desired accelerations of the rows (input at run time).
    """
    if not mechanism.m:
        return aba.function(mechanism.model, q, v, tau), np.zeros(0), np.array(float(Status.CONVERGED))
    task = task_of(mechanism, q, v, tau, 1.0, acceleration=acceleration)
    _check(task)
    borne, taken = _inward(task)
    a, force = _outward(task, borne)
    finite = np.isfinite(np.sum(a) + np.sum(force))
    status = np.where(taken < mechanism.m - 0.5, float(Status.RANK_LOSS), float(Status.CONVERGED))
    return a, force, np.where(finite, status, float(Status.NOT_FINITE))


@dataclass(frozen=True)
class _Reflection:
    """1 - β w wᵀ, symmetric and its own inverse; it does nothing where β is zero."""

    w: Any
    beta: Any

    def __call__(self, x: Any) -> Any:
        """Of x (r,) or (r, k)."""
        along = self.beta * (self.w @ x)
        return x - self.w * along if np.ndim(x) == 1 else x - np.outer(self.w, along)


def _reflection(s: Any, pivot: int, square: Any, vanished: Any) -> _Reflection:
    """What turns s (r,), of the squared length given, into one number in the place `pivot`; nothing if it vanished."""
    length = np.sqrt(np.where(vanished, 1.0, square))
    sign = np.where(s[pivot] < 0.0, -1.0, 1.0)
    w = np.array(s)
    w[pivot] = s[pivot] + sign * length
    return _Reflection(w, np.where(vanished, 0.0, 1.0 / (length * (length + np.abs(s[pivot])))))


@dataclass(frozen=True)
class _Rows:
    """Rows K a + l = 0 on a link: K (r, 6), l (r,), the largest of their first squares, and how often each was a pivot.

    A row that was taken away leaves zeros in its place. Places that were no pivot come first, which keeps the zeros.
    """

    K: Any
    l: Any
    scale: Any
    used: tuple[int, ...]

    def __add__(self, other: _Rows) -> _Rows:
        K, l = np.concatenate([self.K, other.K]), np.concatenate([self.l, other.l])
        return _Rows(K, l, np.maximum(self.scale, other.scale), self.used + other.used)


@dataclass(frozen=True)
class _Taken:
    """The row that a direction took away: s, its place, Q, K'_1 and l'_1, and 1/σ; or whether s has vanished."""

    s: Any
    pivot: int
    Q: _Reflection
    K: Any
    l: Any
    inverse: Any
    vanished: Any


@dataclass(frozen=True)
class _Direction:
    """A direction S of a joint, the velocity v: U = A S, 1/D, u, the row that it took away if it met any.

    `driven` are the rows on this velocity itself, the last ones that it met.
    """

    v: int
    S: Any
    U: Any
    inverse: Any
    u: Any
    taken: _Taken | None
    driven: list[int]


@dataclass(frozen=True)
class _Visit:
    """A link that was passed: the reflections that folded `before` rows into six, its own rows, and its directions.

    Rows are those of the children that bear some, in their order, then the link's own.
    """

    folds: list[_Reflection]
    before: int
    children: list[tuple[int, int]]
    own: tuple[int, ...]
    directions: list[_Direction]


def _inward(task: Task) -> tuple[list[_Visit], Any]:
    """From the leaves to the base; and how many rows were taken away."""
    motions, links = task.motions, task.motions.tree.links
    l = -shifted(task.rows, motions, task.k)
    A = [_whole(rigid_blocks(link)) for link in links]
    p = [np.concatenate(bias_force(link, *motions.velocity[i])) for i, link in enumerate(links)]
    waiting: list[list[tuple[int, _Rows]]] = [[] for _ in links]
    visits: list[Any] = [None] * len(links)
    taken = np.array(0.0)
    for i, link in reversed(list(enumerate(links))):
        own = task.rows.links.get(i)
        parts = [rows for _, rows in waiting[i]]
        if own is not None:
            parts.append(_first(own.K, l[list(own.rows)], np.sum(own.K * own.K, 1)))
        children = [(child, len(rows.used)) for child, rows in waiting[i]]
        before = sum(len(rows.used) for rows in parts)
        folds: list[_Reflection] = []
        if before > _MOST:
            folded, folds = _fold(sum(parts[1:], parts[0]))
            parts = [folded]
        rows = sum(parts[1:], parts[0]) if parts else None
        directions = []
        for k in reversed(range(link.motion.nv)):
            driven = [dof for dof in task.rows.of_joint(i) if dof.k == k]
            for dof in driven:
                new = _first(np.zeros((1, 6)), l[dof.row : dof.row + 1], dof.factor**2)
                rows = rows + new if rows else new
            direction, A[i], p[i], rows = _eliminate(link, k, A[i], p[i], task.tau[link.v + k], rows, driven)
            directions.append(direction)
            if direction.taken:
                taken = taken + np.where(direction.taken.vanished, 0.0, 1.0)
        visits[i] = _Visit(folds, before, children, own.rows if own else (), directions)
        if link.parent < 0:
            continue
        b, pose = np.concatenate(motions.product[i]), motions.poses[i]
        f, n = p[i][:3] + A[i][:3] @ b, p[i][3:] + A[i][3:] @ b
        p[link.parent] = p[link.parent] + np.concatenate(pose.force_to_parent(f, n))
        A[link.parent] = A[link.parent] + _whole(pose.inertia_to_parent(A[i][:3, :3], A[i][:3, 3:], A[i][3:, 3:]))
        if rows:
            K = np.stack([np.concatenate(pose.force_to_parent(row[:3], row[3:])) for row in rows.K])
            waiting[link.parent].append((i, _Rows(K, rows.l + rows.K @ b, rows.scale, rows.used)))
    return visits, taken


def _eliminate(
    link: Link, k: int, A: Any, p: Any, tau: Any, rows: _Rows | None, driven: list[DofRow]
) -> tuple[_Direction, Any, Any, _Rows | None]:
    """Direction k of a link's joint, and a row with it: the equations of the head of this file.

    `driven` tells what the last rows take of this velocity itself.
    """
    S = np.concatenate(link.subspace)[:, k]
    U = A @ S
    inverse = 1.0 / (S @ U + link.armature[k])
    u = tau - S @ p
    axis = link.motion.directions[k]
    plain = link.motion is not Motion.HELICAL and not link.has_rotor  # then nothing is felt along S, exactly
    A = _symmetric(A - np.outer(U * inverse, U))
    if plain:
        A[axis, :] = A[:, axis] = 0.0
    p = p + U * (inverse * u)
    if rows is None:
        return _Direction(link.v + k, S, U, inverse, u, None, []), A, p, None
    drive = np.array([0.0] * (len(rows.used) - len(driven)) + [dof.factor for dof in driven])
    s = rows.K @ S + drive
    square = np.sum(s * s)
    vanished = ~(square > _VANISHED * rows.scale)
    pivot = min(range(len(rows.used)), key=rows.used.__getitem__)
    Q = _reflection(s, pivot, square, vanished)
    K, l = np.array(rows.K - np.outer(s * inverse, U)), rows.l + s * (inverse * u)
    if plain:
        K[:, axis] = -drive
    K, l = np.array(Q(K)), np.array(Q(l))
    row, own = np.array(K[pivot]), l[pivot]
    sigma = np.where(vanished, 1.0, square * inverse)
    weight = np.where(vanished, 0.0, 1.0 / sigma)
    K[pivot], l[pivot] = np.where(vanished, row, 0.0), np.where(vanished, own, 0.0)
    A = _symmetric(A + np.outer(row * weight, row))
    p = p + row * (weight * own)
    taken = _Taken(s, pivot, Q, row, own, weight, vanished)
    used = tuple(n + (j == pivot) for j, n in enumerate(rows.used))
    direction = _Direction(link.v + k, S, U, inverse, u, taken, [dof.row for dof in driven])
    return direction, A, p, _Rows(K, l, rows.scale, used)


def _fold(rows: _Rows) -> tuple[_Rows, list[_Reflection]]:
    """Six rows that say what many say, by a QR factorisation of K; what is left has K = 0, and no force."""
    K, l, folds = rows.K, rows.l, []
    for column in range(6):
        s = np.array(K[:, column])
        s[:column] = 0.0
        square = np.sum(s * s)
        Q = _reflection(s, column, square, square == 0.0)
        K, l = Q(K), Q(l)
        folds.append(Q)
    return _Rows(K[:_MOST], l[:_MOST], rows.scale, (0,) * _MOST), folds


def _outward(task: Task, visits: list[_Visit]) -> tuple[Any, Any]:
    """From the base to the leaves: accelerations (nv,), and the rows' forces (m,)."""
    motions, links = task.motions, task.motions.tree.links
    a, force = np.zeros(task.mechanism.nv), np.zeros(task.mechanism.m)
    motion: dict[int, Any] = {-1: (-np.array(motions.tree.gravity), np.zeros(3))}
    given: dict[int, Any] = {}  # forces of the rows that a link has handed to its parent
    for i, (link, visit) in enumerate(zip(links, visits, strict=True)):
        lin, ang = motions.poses[i].motion_to_child(*motion[link.parent])
        now = np.concatenate([lin + motions.product[i][0], ang + motions.product[i][1]])
        rows: Any = given.get(i)
        for direction in reversed(visit.directions):
            push = direction.u - direction.U @ now
            if direction.taken is not None:
                t, many = direction.taken, len(direction.driven)
                rows = np.zeros(len(t.s)) if rows is None else np.array(rows)  # at the base, none is left
                rows[t.pivot] = np.where(t.vanished, rows[t.pivot], -(t.K @ now + t.l) * t.inverse)
                rows = t.Q(rows)
                push = push + t.s @ rows
                for j, row in enumerate(direction.driven):
                    force[row] = rows[len(rows) - many + j]
                rows = rows[: len(rows) - many]
            a[direction.v] = direction.inverse * push
            now = now + direction.S * a[direction.v]
        motion[i] = (now[:3], now[3:])
        if visit.folds:
            rows = np.concatenate([rows, np.zeros(visit.before - _MOST)])
            for Q in reversed(visit.folds):
                rows = Q(rows)
        at = 0
        for child, many in visit.children:
            given[child], at = rows[at : at + many], at + many
        for j, row in enumerate(visit.own):
            force[row] = rows[at + j]
    return a, force


def _first(K: Any, l: Any, squares: Any) -> _Rows:
    """Rows where they enter."""
    return _Rows(np.array(K), l, np.max(squares), (0,) * len(K))


def _whole(blocks: Blocks) -> Any:
    """An inertia (6, 6) from its blocks."""
    M, H, I = blocks
    return np.concatenate([np.concatenate([M, H], 1), np.concatenate([H.T, I], 1)])


def _symmetric(A: Any) -> Any:
    """The lower triangle, mirrored."""
    return np.array(np.tril(A) + np.tril(A, -1).T)


def _check(task: Task) -> None:
    """Raise where rows are none that this recursion can take away."""
    tree = task.motions.tree
    if tree.mimics:
        raise DelassusError(
            f"joints of {task.mechanism.model.name!r} share coordinates (mimicry), so there is no recursion over its "
            "tree: take prox_ltl or three_steps."
        )
    if np.any(task.rows.compliance != 0.0):
        raise DelassusError(
            f"the constraints have compliance, up to {task.rows.compliance.max():g}, and pv_early meets rows exactly: "
            "take prox_pv or caba."
        )
    check_single(tree, task.rows)
