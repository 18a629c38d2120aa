"""The proximal Popov–Vereshchagin algorithm: the Delassus matrix by one sweep over the tree, then its iterations.

Solves M a + c = tau + Jᵀ λ, J a + γ + C λ = 0 (see `task`) without forming M or J. Inward, next to the
articulated-body recursion, the rows travel from their links to the base: K (r, 6) what they feel of a link's
acceleration, L their Delassus matrix and l their acceleration, as far as joints below it decide,

    K_π = (K - K S Wᵀ) X,   L += K S D⁻¹ (K S)ᵀ,   l += K (b + S D⁻¹ (u - Uᵀ b)).

At the base L = J M⁻¹ Jᵀ and K a_0 + l = J a_free + γ. O(n + m² d + m³) operations and m² an iteration. Choose it
for few rows, or where digits count: there are no penalties in it.

References: A. Vereshchagin, Modeling and control of motion of manipulational robots (1989); A. Sathya, J. Carpentier,
Constrained articulated body dynamics algorithms (2024), section V.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import delassus.numpy as np
from delassus.compiler.kernel import kernel
from delassus.constrained import dual, prox_ltl
from delassus.constrained.method import Method, State, solve
from delassus.constrained.task import ROW_INPUTS, SIGNATURE, Proximal, Task
from delassus.constraints.mechanism import Mechanism
from delassus.constraints.rows import shifted
from delassus.dynamics.articulated import FreeJoint, free_joint
from delassus.dynamics.poses import Blocks, rigid_blocks
from delassus.dynamics.recursion import bias_force
from delassus.model.links import links_of


@kernel(SIGNATURE, inputs=ROW_INPUTS)
def prox_pv(
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
    """Accelerations (nv,) [rad/s², m/s²] and constraint forces λ (m,) [N, N·m]; arguments as for `caba`."""
    # Joints that share coordinates have no recursion over the tree: the same iterates are found in joint space.
    method = prox_ltl.METHOD if links_of(mechanism.model).mimics else METHOD
    return solve(method, mechanism, q, v, tau, iterations, proximal, mask, force, acceleration)


@dataclass(frozen=True)
class Factors:
    """The system of the forces; the joints' factors, D⁻¹ u (nv,), and K S of the rows that each joint moves."""

    dual: dual.Dual
    joints: list[FreeJoint]
    push: Any
    moved: list[dict[int, Any]]


def factor(task: Task, force: Any = None) -> tuple[Factors, State]:
    """Inward: articulated inertias and forces, and the rows of the constraints; then the first iteration."""
    tree, rows, motions = task.motions.tree, task.rows, task.motions
    links = tree.links
    A: list[Blocks] = [rigid_blocks(link) for link in links]
    p = [bias_force(link, *motions.velocity[i]) for i, link in enumerate(links)]
    K: list[dict[int, Any]] = [{} for _ in links]
    on = np.ones(rows.m) if task.on is None else task.on
    for i, own in rows.links.items():
        K[i] = {row: on[row] * own.K[j] for j, row in enumerate(own.rows)}
    L, l = np.zeros((rows.m, rows.m)), -task.active(shifted(rows, motions, task.k))
    joints: list[Any] = [None] * len(links)
    moved: list[dict[int, Any]] = [{} for _ in links]
    push = np.zeros(task.mechanism.nv)
    world = np.concatenate([-np.array(tree.gravity), np.zeros(3)])
    for i, link in reversed(list(enumerate(links))):
        S_lin, S_ang = link.subspace
        joint = joints[i] = free_joint(link, A[i])
        at = slice(link.v, link.v + link.motion.nv)
        u = task.tau[at] - S_lin.T @ p[i][0] - S_ang.T @ p[i][1]
        push[at] = joint.push(u)
        lin, ang = motions.product[i]
        driven = {dof.row: _unit(dof.k, link.motion.nv, dof.factor * on[dof.row]) for dof in rows.of_joint(i)}
        KS: dict[int, Any] = {}
        left: dict[int, Any] = {}  # (K - K S Wᵀ) X: what a row feels of the parent's acceleration
        for r in sorted({*K[i], *driven}):
            own = K[i].get(r, np.zeros(6))
            KS[r], *rest = joint.carry(own[:3], own[3:], driven.get(r))
            left[r] = np.concatenate(motions.poses[i].force_to_parent(*rest))  # a row travels as a force does
        moved[i] = KS
        free = push[at] - joint.W[:3].T @ lin - joint.W[3:].T @ ang  # D⁻¹ (u - Uᵀ b)
        for j, r in enumerate(KS):
            pulled = joint.push(KS[r])
            for t in list(KS)[: j + 1]:
                L[r, t] = L[r, t] + pulled @ KS[t]
            l[r] = l[r] + KS[r] @ free
            if r in K[i]:
                l[r] = l[r] + K[i][r][:3] @ lin + K[i][r][3:] @ ang
        if link.parent < 0:
            for r, x in left.items():
                l[r] = l[r] + x @ world
            continue
        for r, x in left.items():
            K[link.parent][r] = K[link.parent][r] + x if r in K[link.parent] else x
        M, H, I = joint.felt_through(A[i])
        f = p[i][0] + M @ lin + H @ ang + joint.W[:3] @ u
        n = p[i][1] + H.T @ lin + I @ ang + joint.W[3:] @ u
        f, n = motions.poses[i].force_to_parent(f, n)
        p[link.parent] = (p[link.parent][0] + f, p[link.parent][1] + n)
        own_A, more = A[link.parent], motions.poses[i].inertia_to_parent(M, H, I)
        A[link.parent] = (own_A[0] + more[0], own_A[1] + more[1], own_A[2] + more[2])
    factors = Factors(dual.factor(task, L, l), joints, push, moved)
    return factors, dual.start(factors.dual, force)


def iterate(factors: Factors, state: State) -> State:
    """One more iteration."""
    return dual.iterate(factors.dual, state)


def finish(factors: Factors, state: State) -> tuple[Any, Any]:
    """Outward: the accelerations of all joints under the forces λ."""
    task = factors.dual.task
    tree, motions = task.motions.tree, task.motions
    acceleration: list[Any] = []
    a = np.zeros(task.mechanism.nv)
    for i, link in enumerate(tree.links):
        S_lin, S_ang = link.subspace
        joint, at = factors.joints[i], slice(link.v, link.v + link.motion.nv)
        base = (-np.array(tree.gravity), np.zeros(3)) if link.parent < 0 else acceleration[link.parent]
        lin, ang = motions.poses[i].motion_to_child(*base)
        lin, ang = lin + motions.product[i][0], ang + motions.product[i][1]
        own = factors.push[at] - joint.W[:3].T @ lin - joint.W[3:].T @ ang
        if factors.moved[i]:
            u = np.zeros(link.motion.nv)
            for row, KS in factors.moved[i].items():
                u = u + KS * state.force[row]
            own = own + joint.push(u)
        acceleration.append((lin + S_lin @ own, ang + S_ang @ own))
        a[at] = own
    return a, state.force


def agreed(factors: Factors, state: State) -> Factors:
    """The factors of the rows made to agree."""
    return replace(factors, dual=dual.consistent(factors.dual, state))


METHOD = Method(factor, iterate, finish, agreed)


def _unit(k: int, n: int, value: Any) -> Any:
    unit = np.zeros(n)
    unit[k] = value
    return unit
