"""The constrained articulated-body algorithm: accelerations and constraint forces in O(n + m) per iteration.

Solves M a + c = tau + Jᵀ λ, J a + γ + C λ = 0 by proximal iterations (see `task`) without forming M, J or a Delassus
matrix. A constraint K a = k on a link is a penalty: ρ KᵀK joins the link's inertia, Kᵀ(ρ k + keep λ⁻) its forces,
and the articulated-body recursion solves for a. A further iteration changes forces only, so two sweeps over the
links that move constraints give the next accelerations; the other links are visited once, at the end.

A row on several links couples them: ρ K_jᵀK_i is the inertia between links j and i (see `couplings`). Links are
eliminated one after the other, and what a link was coupled with is then coupled with its parent, so a loop costs
operations along its links only, and on the way to where it is closed. So do rows that tie joints to each other, or to
bodies: gears, grippers, functions of the user.

Choose it for robots of many joints, or many rows: nothing in it grows faster than their number. Penalties cost
digits, about log10(ρ/mass) of them: where these count (float32), or for a few rows on a small robot, take `prox_pv` or
`prox_ltl`.

Reference: A. Sathya, J. Carpentier, Constrained articulated body dynamics algorithms (2024), algorithm 2, with the
joint forces u accumulated from iteration to iteration; A. Sathya, J. Carpentier, Constrained articulated body dynamics
for closed loops (2025), algorithm 1, with the signs of its equation 30e and lines 19 and 29 corrected.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import delassus.numpy as np
from delassus.compiler.kernel import kernel
from delassus.constrained import prox_ltls
from delassus.constrained.articulated_tree import ZERO, ArticulatedTree, joint_penalty, penalty, row_forces, total
from delassus.constrained.couplings import Couplings
from delassus.constrained.elimination_order import elimination_order
from delassus.constrained.method import Method, PrimalState, solve
from delassus.constrained.ports import Bonds
from delassus.constrained.proximal import Proximal
from delassus.constrained.task import ROW_INPUTS, SIGNATURE, SINGLE, Task
from delassus.constraints.mechanism import Mechanism
from delassus.constraints.rows import against_gravity, row_values
from delassus.dynamics.articulated import free_joint
from delassus.dynamics.poses import Pair, rigid_blocks
from delassus.dynamics.recursion import bias_force
from delassus.model.links import Links, links_of


@kernel(SIGNATURE, inputs=ROW_INPUTS, single=SINGLE)
def caba(
    mechanism: Mechanism,
    q: Any,
    v: Any,
    tau: Any,
    *,
    iterations: int = 3,
    proximal: Proximal = None,
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
        proximal: The proximal parameter ε [1/kg, 1/(kg·m²)], one number or one per row; by default a share of what the
            rows yield (see `proximal`).
        mask: (m,) not zero for rows that act (input at run time).
        force: (m,) forces to start from (input at run time).
        acceleration: (m,) desired accelerations of the rows (input at run time).
        time: () [s] what references move with, needed where they do (input at run time).
    """
    # Joints that share coordinates have no recursion over the tree: the same iterates are found in joint space.
    method = prox_ltls.METHOD if links_of(mechanism.model).mimics else METHOD
    return solve(method, mechanism, q, v, tau, iterations, proximal, mask, force, acceleration, time)


@dataclass(frozen=True)
class Factors:
    """What does not change between iterations: the joints' factors, and the right-hand side k - K g (m,)."""

    task: Task
    body: ArticulatedTree
    k: Any


def factor(task: Task, force: Any = None) -> tuple[Factors, PrimalState]:
    """Inward: articulated inertias with the penalties of the constraints, and all forces, for the first iteration.

    One pass for both: what a joint carries is used up before the next one is visited, which keeps it in registers.
    """
    tree, rows, motions = task.motions.tree, task.rows, task.motions
    first, k = task.first_force(force), against_gravity(rows, motions, task.k)
    force = task.keep * first + task.rho * k
    applied, driven = row_forces(tree, rows.untied, force)
    A = [rigid_blocks(link) for link in tree.links]
    p = [bias_force(link, *motions.velocity[i]) for i, link in enumerate(tree.links)]
    for i, own in rows.untied.links.items():
        A[i] = total(A[i], penalty(own.K, task.rho[list(own.rows)]))
        p[i] = (p[i][0] - applied[i][0], p[i][1] - applied[i][1])
    couplings = Couplings(tree, rows, task.rho, force)
    joints: list[Any] = [None] * len(tree.links)
    bonds = [Bonds() for _ in tree.links]
    push = np.zeros(task.mechanism.nv)
    order = elimination_order(tree, rows.layout.pairs)
    for i in order:
        link, b = tree.links[i], motions.product[i]
        taken = couplings.take(i)
        if taken is not None:
            A[i], p[i] = total(A[i], taken[0]), (p[i][0] + taken[1][0], p[i][1] + taken[1][1])
        joint = free_joint(link, A[i], joint_penalty(tree, rows.untied, i, task.rho))
        S_lin, S_ang = link.subspace
        at = slice(link.v, link.v + link.motion.nv)
        u = task.tau[at] - S_lin.T @ p[i][0] - S_ang.T @ p[i][1]
        u = u + driven[i] if i in driven else u
        push[at] = joint.push(u)
        if couplings.touch(i):
            base = _world(tree) if link.parent < 0 else ZERO
            lin, ang = motions.poses[i].motion_to_child(*base)
            still = (lin + b[0], ang + b[1])
            joint, push[at], bonds[i] = couplings.eliminate(i, joint, motions.poses[i], u, push[at], still)
        joints[i] = joint
        if link.parent < 0:
            continue
        M, H, I = joint.felt_through(A[i])
        f = p[i][0] + M @ b[0] + H @ b[1] + joint.W[:3] @ u
        n = p[i][1] + H.T @ b[0] + I @ b[1] + joint.W[3:] @ u
        f, n = motions.poses[i].force_to_parent(f, n)
        p[link.parent] = (p[link.parent][0] + f, p[link.parent][1] + n)
        A[link.parent] = total(A[link.parent], motions.poses[i].inertia_to_parent(M, H, I))
    factors = Factors(task, ArticulatedTree(tree, motions.poses, joints, order, bonds), k)
    return factors, _state(factors, first, push)


def iterate(factors: Factors, state: PrimalState) -> PrimalState:
    """One more iteration: the change of the constraints' forces, through the joints that carry them."""
    task, body = factors.task, factors.body
    change = task.keep * (state.force - state.before)
    push = np.array(state.work)
    for i, (_, more) in body.pushes(task.rows, change).items():
        at = slice(body.tree.links[i].v, body.tree.links[i].v + body.tree.links[i].motion.nv)
        push[at] = push[at] + more
    return _state(factors, state.force, push)


def finish(factors: Factors, state: PrimalState) -> tuple[Any, Any]:
    """The accelerations of all joints, and the forces λ."""
    return _accelerations(factors, state.work, factors.body.order)[1], state.force


def shifted(factors: Factors, r: Any) -> Factors:
    """The same for rows that ask for a residual r (m,)."""
    return replace(factors, k=factors.k + r)


METHOD = Method(factor, iterate, shifted, finish, penalties=True)


def _state(factors: Factors, before: Any, push: Any) -> PrimalState:
    """The state after an iteration: outward to the constraints with D⁻¹ u (nv,), and their forces from λ⁻ (m,)."""
    task = factors.task
    moving = _accelerations(factors, push, task.rows.support)
    force, residual = task.update(before, task.active(row_values(task.rows, *moving) - factors.k))
    return PrimalState(force, before, residual, push)


def _accelerations(factors: Factors, push: Any, links: tuple[int, ...]) -> tuple[dict[int, Pair], Any, dict[int, Any]]:
    """Accelerations of some links (with those that carry them), against gravity, of their joints (nv,), and of ties."""
    motions = factors.task.motions
    return factors.body.accelerations(push, links, _world(motions.tree), motions.product)


def _world(tree: Links) -> Pair:
    """The acceleration of the world, against gravity."""
    return -np.array(tree.gravity), np.zeros(3)
