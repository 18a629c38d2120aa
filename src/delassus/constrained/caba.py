"""The constrained articulated-body algorithm: accelerations and constraint forces in O(n + m) per iteration.

Solves M a + c = tau + Jᵀ λ, J a + γ + C λ = 0 by proximal iterations (see `task`) without forming M, J or a Delassus
matrix. A constraint K a = k on a link is a penalty: ρ KᵀK joins the link's inertia, Kᵀ(ρ k + keep λ⁻) its forces,
and the articulated-body recursion solves for a. A further iteration changes forces only, so two sweeps over the
links that move constraints give the next accelerations; the other links are visited once, at the end.

A row on several links couples them: ρ K_jᵀK_i is the inertia between links j and i (see `couplings`). Links are
eliminated one after the other, and what a link was coupled with is then coupled with its parent, so a loop costs
operations along its links only, and on the way to where it is closed.

Choose it for robots of many joints, or many rows: nothing in it grows faster than their number. Penalties cost
digits, about log10(ρ/mass) of them: where these count (float32), or for a few rows on a small robot, take `prox_pv` or
`prox_ltl`.

Reference: A. Sathya, J. Carpentier, Constrained articulated body dynamics algorithms (2024), algorithm 2, with the
joint forces u accumulated from iteration to iteration; A. Sathya, J. Carpentier, Constrained articulated body dynamics
for closed loops (2025), algorithm 1, with the signs of its equation 30e and lines 19 and 29 corrected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.compiler.kernel import kernel
from delassus.constrained import prox_ltls
from delassus.constrained.couplings import Couplings, Port, elimination_order
from delassus.constrained.method import Method, PrimalState, solve
from delassus.constrained.task import ROW_INPUTS, SIGNATURE, Proximal, Task
from delassus.constraints.constraint import Constraint, ConstraintError
from delassus.constraints.coupling import Coupling
from delassus.constraints.implicit import Implicit
from delassus.constraints.mechanism import Mechanism
from delassus.constraints.rows import row_values, shifted
from delassus.dynamics.articulated import FreeJoint, free_joint
from delassus.dynamics.poses import Blocks, Pair, mirrored, rigid_blocks
from delassus.dynamics.recursion import bias_force
from delassus.model.links import Links, links_of


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
    time: Any = None,
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
        time: () [s] what references move with, 0 if not given (input at run time).
    """
    # Joints that share coordinates have no recursion over the tree: the same iterates are found in joint space.
    method = prox_ltls.METHOD if links_of(mechanism.model).mimics else METHOD
    return solve(method, mechanism, q, v, tau, iterations, proximal, mask, force, acceleration, time)


@dataclass(frozen=True)
class Factors:
    """What does not change between iterations: the joints' factors, the right-hand side k - K g (m,), and the loops.

    `order` is the one in which links are eliminated; `felt[i]` holds the ports that link i was coupled with then, each
    with T (r, n).
    """

    task: Task
    joints: list[FreeJoint]
    k: Any
    order: tuple[int, ...]
    felt: list[list[tuple[Port, Any]]]


def ties_joints(constraint: Constraint) -> bool:
    """Whether rows of a constraint are on several joints' velocities: penalties on these are not seen by the links."""
    return isinstance(constraint, (Coupling, Implicit))


def check_rows(mechanism: Mechanism) -> None:
    """Raise if a constraint ties joints to each other."""
    for constraint in filter(ties_joints, mechanism.constraints):
        raise ConstraintError(
            f"the constraint {constraint.label!r} ({type(constraint).__name__}) ties joints to each other, which caba "
            "cannot carry: take prox_pv, prox_ltl or prox_ltls, or constrained_dynamics with method='auto'."
        )


def factor(task: Task, force: Any = None) -> tuple[Factors, PrimalState]:
    """Inward: articulated inertias with the penalties of the constraints, and all forces, for the first iteration.

    One pass for both: what a joint carries is used up before the next one is visited, which keeps it in registers.
    """
    check_rows(task.mechanism)
    tree, rows, motions = task.motions.tree, task.rows, task.motions
    first, k = task.first_force(force), shifted(rows, motions, task.k)
    applied, driven = _row_forces(task, task.keep * first + task.rho * k)
    A = [rigid_blocks(link) for link in tree.links]
    p = [bias_force(link, *motions.velocity[i]) for i, link in enumerate(tree.links)]
    for i, own in rows.links.items():
        A[i] = _sum(A[i], _penalty(own.K, task.rho[list(own.rows)]))
        p[i] = (p[i][0] - applied[i][0], p[i][1] - applied[i][1])
    couplings = Couplings(rows, task.rho)
    joints: list[Any] = [None] * len(tree.links)
    felt: list[list[tuple[Port, Any]]] = [[] for _ in tree.links]
    push = np.zeros(task.mechanism.nv)
    order = elimination_order(tree, rows.layout.pairs)
    for i in order:
        link, b = tree.links[i], motions.product[i]
        taken = couplings.take(i)
        if taken is not None:
            A[i], p[i] = _sum(A[i], taken[0]), (p[i][0] + taken[1][0], p[i][1] + taken[1][1])
        joint = joints[i] = free_joint(link, A[i], _joint_penalty(task, i))
        S_lin, S_ang = link.subspace
        at = slice(link.v, link.v + link.motion.nv)
        u = task.tau[at] + driven[at] - S_lin.T @ p[i][0] - S_ang.T @ p[i][1]
        push[at] = joint.push(u)
        if taken is not None:
            base = _world(tree) if link.parent < 0 else (np.zeros(3), np.zeros(3))
            lin, ang = motions.poses[i].motion_to_child(*base)
            lin, ang = lin + b[0], ang + b[1]
            own = push[at] - joint.W[:3].T @ lin - joint.W[3:].T @ ang
            moved = (lin + S_lin @ own, ang + S_ang @ own)  # Pᵀ b + S D⁻¹ u
            felt[i] = couplings.eliminate(i, joint, motions.poses[i], link.parent, moved)
        if link.parent < 0:
            continue
        M, H, I = joint.felt_through(A[i])
        f = p[i][0] + M @ b[0] + H @ b[1] + joint.W[:3] @ u
        n = p[i][1] + H.T @ b[0] + I @ b[1] + joint.W[3:] @ u
        f, n = motions.poses[i].force_to_parent(f, n)
        p[link.parent] = (p[link.parent][0] + f, p[link.parent][1] + n)
        A[link.parent] = _sum(A[link.parent], motions.poses[i].inertia_to_parent(M, H, I))
    factors = Factors(task, joints, k, order, felt)
    return factors, _state(factors, first, push)


def iterate(factors: Factors, state: PrimalState) -> PrimalState:
    """One more iteration: the change of the constraints' forces, through the joints that carry them."""
    task = factors.task
    tree, motions = task.motions.tree, task.motions
    applied, driven = _row_forces(task, task.keep * (state.force - state.before))
    push = np.array(state.work)

    pressed: dict[Port, Any] = {}  # T D⁻¹ Δu (r,): what ports feel, until their links are eliminated

    def add(j: int, f: Any, n: Any) -> None:
        before = applied.get(j, (np.zeros(3), np.zeros(3)))
        applied[j] = (before[0] + f, before[1] + n)

    for i in factors.order:
        if i not in task.rows.support:
            continue
        link, joint = tree.links[i], factors.joints[i]
        at = slice(link.v, link.v + link.motion.nv)
        for port in [port for port in pressed if port.link == i]:
            add(i, *port.exert(-pressed.pop(port)))
        here = applied.get(i, (np.zeros(3), np.zeros(3)))
        u, f, n = joint.carry(*here, driven[at] if task.rows.of_joint(i) else None)
        more = joint.push(u)
        push[at] = push[at] + more
        for port, T in factors.felt[i]:
            pressed[port] = pressed[port] + T @ more if port in pressed else T @ more
        if link.parent >= 0:
            add(link.parent, *motions.poses[i].force_to_parent(f, n))
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
    acceleration: dict[int, Pair] = {-1: _world(tree)}
    a = np.zeros(task.mechanism.nv)
    for i in reversed(factors.order):
        if i not in links:
            continue
        link, joint = tree.links[i], factors.joints[i]
        S_lin, S_ang = link.subspace
        lin, ang = motions.poses[i].motion_to_child(*acceleration[link.parent])
        lin, ang = lin + motions.product[i][0], ang + motions.product[i][1]
        at = slice(link.v, link.v + link.motion.nv)
        own = push[at] - joint.W[:3].T @ lin - joint.W[3:].T @ ang
        if factors.felt[i]:
            pull = np.zeros(link.motion.nv)
            for port, T in factors.felt[i]:
                pull = pull + T.T @ port.felt(acceleration[port.link])
            own = own - joint.push(pull)
        acceleration[i] = (lin + S_lin @ own, ang + S_ang @ own)
        a[at] = own
    return acceleration, a


def _world(tree: Links) -> Pair:
    """The acceleration of the world, against gravity."""
    return -np.array(tree.gravity), np.zeros(3)


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
    return mirrored(weighted[:3] @ K[:, :3]), weighted[:3] @ K[:, 3:], mirrored(weighted[3:] @ K[:, 3:])


def _sum(A: Blocks, B: Blocks) -> Blocks:
    return A[0] + B[0], A[1] + B[1], A[2] + B[2]
