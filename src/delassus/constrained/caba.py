"""The constrained articulated-body algorithm: accelerations and constraint forces in O(n + m) per iteration.

Solves M a + c = tau + Jᵀ λ, J a + γ + C λ = 0 by proximal iterations (see `task`) without forming M, J or a Delassus
matrix. A constraint K a = k on a link is a penalty: ρ KᵀK joins the link's inertia, Kᵀ(ρ k + keep λ⁻) its forces,
and the articulated-body recursion solves for a. A further iteration changes forces only, so two sweeps over the
links that move constraints give the next accelerations; the other links are visited once, at the end.

Choose it for robots of many joints, or many rows: nothing in it grows faster than their number. Penalties cost
digits, about log10(ρ/mass) of them: where these count (float32), or for a few rows on a small robot, take `prox_pv` or
`prox_ltl`.

Reference: A. Sathya, J. Carpentier, Constrained articulated body dynamics algorithms (2024), algorithm 2, with the
joint forces u accumulated from iteration to iteration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.compiler.kernel import kernel
from delassus.constrained import prox_ltls
from delassus.constrained.method import Method, PrimalState, solve
from delassus.constrained.task import ROW_INPUTS, SIGNATURE, Proximal, Task
from delassus.constraints.mechanism import Mechanism
from delassus.constraints.rows import row_values, shifted
from delassus.dynamics.articulated import FreeJoint, free_joint
from delassus.dynamics.poses import Blocks, Pair, rigid_blocks
from delassus.dynamics.recursion import bias_force
from delassus.model.links import links_of


@kernel(SIGNATURE, inputs=ROW_INPUTS)
def caba(
    mechanism: Mechanism,
    q: Any,
    v: Any,
    tau: Any,
    *,
    iterations: int = 3,
    proximal: Proximal = 1e-6,
    mask: Any = None,
    force: Any = None,
    acceleration: Any = None,
) -> Any:
    """Accelerations (nv,) [rad/s², m/s²] and constraint forces λ (m,) [N, N·m].

    Args:
        mechanism: The robot and its constraints.
        q: Configuration (nq,) [rad, m].
        v: Velocity (nv,) [rad/s, m/s].
        tau: Generalised forces (nv,) [N·m, N].
        iterations: Number of proximal iterations, unrolled.
        proximal: The proximal parameter ε [1/kg, 1/(kg·m²)], one number or one per row.
        mask: (m,) not zero for rows that act (input at run time).
        force: (m,) forces to start from (input at run time).
        acceleration: (m,) desired accelerations of the rows (input at run time).
    """
    # Joints that share coordinates have no recursion over the tree: the same iterates are found in joint space.
    method = prox_ltls.METHOD if links_of(mechanism.model).mimics else METHOD
    return solve(method, mechanism, q, v, tau, iterations, proximal, mask, force, acceleration)


@dataclass(frozen=True)
class Factors:
    """What does not change between iterations: the joints' factors, and the right-hand side k - K g (m,)."""

    task: Task
    joints: list[FreeJoint]
    k: Any


def factor(task: Task, force: Any = None) -> tuple[Factors, PrimalState]:
    """Inward: articulated inertias with the penalties of the constraints, and all forces, for the first iteration.

    One pass for both: what a joint carries is used up before the next one is visited, which keeps it in registers.
    """
    tree, rows, motions = task.motions.tree, task.rows, task.motions
    first, k = task.first_force(force), shifted(rows, motions, task.k)
    applied, driven = _row_forces(task, task.keep * first + task.rho * k)
    A = [rigid_blocks(link) for link in tree.links]
    p = [bias_force(link, *motions.velocity[i]) for i, link in enumerate(tree.links)]
    for i, own in rows.links.items():
        A[i] = _sum(A[i], _penalty(own.K, task.rho[list(own.rows)]))
        p[i] = (p[i][0] - applied[i][0], p[i][1] - applied[i][1])
    joints: list[Any] = [None] * len(tree.links)
    push = np.zeros(task.mechanism.nv)
    for i, link in reversed(list(enumerate(tree.links))):
        joint = joints[i] = free_joint(link, A[i], _joint_penalty(task, i))
        S_lin, S_ang = link.subspace
        at = slice(link.v, link.v + link.motion.nv)
        u = task.tau[at] + driven[at] - S_lin.T @ p[i][0] - S_ang.T @ p[i][1]
        push[at] = joint.push(u)
        if link.parent < 0:
            continue
        (M, H, I), b = joint.felt_through(A[i]), motions.product[i]
        f = p[i][0] + M @ b[0] + H @ b[1] + joint.W[:3] @ u
        n = p[i][1] + H.T @ b[0] + I @ b[1] + joint.W[3:] @ u
        f, n = motions.poses[i].force_to_parent(f, n)
        p[link.parent] = (p[link.parent][0] + f, p[link.parent][1] + n)
        A[link.parent] = _sum(A[link.parent], motions.poses[i].inertia_to_parent(M, H, I))
    factors = Factors(task, joints, k)
    return factors, _state(factors, first, push)


def iterate(factors: Factors, state: PrimalState) -> PrimalState:
    """One more iteration: the change of the constraints' forces, through the joints that carry them."""
    task = factors.task
    tree, motions = task.motions.tree, task.motions
    applied, driven = _row_forces(task, task.keep * (state.force - state.before))
    push = np.array(state.work)
    for i in reversed(task.rows.support):
        link, joint = tree.links[i], factors.joints[i]
        at = slice(link.v, link.v + link.motion.nv)
        here = applied.get(i, (np.zeros(3), np.zeros(3)))
        u, f, n = joint.carry(*here, driven[at] if task.rows.of_joint(i) else None)
        push[at] = push[at] + joint.push(u)
        if link.parent >= 0:
            f, n = motions.poses[i].force_to_parent(f, n)
            before = applied.get(link.parent, (np.zeros(3), np.zeros(3)))
            applied[link.parent] = (before[0] + f, before[1] + n)
    return _state(factors, state.force, push)


def finish(factors: Factors, state: PrimalState) -> tuple[Any, Any]:
    """The accelerations of all joints, and the forces λ."""
    _, a = _outward(factors, state.work, tuple(range(len(factors.joints))))
    return a, state.force


METHOD = Method(factor, iterate, finish)


def _state(factors: Factors, before: Any, push: Any) -> PrimalState:
    """The state after an iteration: outward to the constraints with D⁻¹ u (nv,), and their forces from λ⁻ (m,)."""
    task = factors.task
    motion, a = _outward(factors, push, task.rows.support)
    force, residual = task.update(before, task.active(row_values(task.rows, motion, a) - factors.k))
    return PrimalState(force, before, residual, push)


def _outward(factors: Factors, push: Any, links: tuple[int, ...]) -> tuple[dict[int, Pair], Any]:
    """Accelerations of some links (those that carry them included), against gravity, and of their joints (nv,)."""
    task = factors.task
    tree, motions = task.motions.tree, task.motions
    acceleration: dict[int, Pair] = {-1: (-np.array(tree.gravity), np.zeros(3))}
    a = np.zeros(task.mechanism.nv)
    for i in links:
        link, W = tree.links[i], factors.joints[i].W
        S_lin, S_ang = link.subspace
        lin, ang = motions.poses[i].motion_to_child(*acceleration[link.parent])
        lin, ang = lin + motions.product[i][0], ang + motions.product[i][1]
        at = slice(link.v, link.v + link.motion.nv)
        own = push[at] - W[:3].T @ lin - W[3:].T @ ang
        acceleration[i] = (lin + S_lin @ own, ang + S_ang @ own)
        a[at] = own
    return acceleration, a


def _row_forces(task: Task, x: Any) -> tuple[dict[int, Pair], Any]:
    """Kᵀ x on the links, and on the velocities (nv,), of numbers x (m,) by row."""
    applied = {}
    for i, own in task.rows.links.items():
        here = x[list(own.rows)]
        applied[i] = (own.K[:, :3].T @ here, own.K[:, 3:].T @ here)
    driven = np.zeros(task.mechanism.nv)
    for dof in task.rows.dofs:
        driven[dof.v] = driven[dof.v] + dof.factor * x[dof.row]
    return applied, driven


def _joint_penalty(task: Task, link: int) -> Any:
    """What rows on a joint's velocities add to its D (n,), if there are any."""
    own = task.rows.of_joint(link)
    if not own:
        return None
    added = np.zeros(task.motions.tree.links[link].motion.nv)
    for dof in own:
        added[dof.k] = added[dof.k] + dof.factor**2 * task.rho[dof.row]
    return added


def _penalty(K: Any, rho: Any) -> Blocks:
    """Kᵀ diag(ρ) K in blocks."""
    weighted = K.T * rho
    return weighted[:3] @ K[:, :3], weighted[:3] @ K[:, 3:], weighted[3:] @ K[:, 3:]


def _sum(A: Blocks, B: Blocks) -> Blocks:
    return A[0] + B[0], A[1] + B[1], A[2] + B[2]
