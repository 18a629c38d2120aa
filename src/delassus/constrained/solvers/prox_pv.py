"""The proximal Popov–Vereshchagin algorithm: the Delassus matrix by one sweep over the tree, then its iterations.

Solves M a + c = tau + Jᵀ λ, J a + γ + C λ = 0 (see `weights`) without forming M or J. Inward, along with the
articulated-body recursion, the rows are propagated from their links to the base: K (r, 6) are their coefficients of a
link's acceleration, L their Delassus matrix and l their acceleration due to the joints below it,

    K_π = (K - K S Wᵀ) X,   L += K S D⁻¹ (K S)ᵀ,   l += K (b + S D⁻¹ (u - Uᵀ b)).

At the base L = J M⁻¹ Jᵀ and K a_0 + l = J a_free + γ. O(n + m² d + m³) operations, and m² per iteration.

A row on several links is propagated from each of them. Where these paths meet, at the root of its loop, nothing further
out depends on its multiplier, which is eliminated there (see `multipliers`) and replaced by a spring on the link: O(n +
m_b² n + m_b³), m_b the largest number of rows that pass a link. An iteration is then a sweep over the links of loops.

Choose it for few rows, or where accuracy matters: it has no penalties.

References: A. Vereshchagin, Modeling and control of motion of manipulational robots (1989); A. Sathya, J. Carpentier,
Constrained articulated body dynamics algorithms (2024), section V; for loops, their closed-loop paper (2025),
algorithms 4 to 6, with the signs of the forces' terms corrected; H. Brandl, R. Johanni, M. Otter (1986).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.elimination.multipliers import MultiplierElimination, eliminate
from delassus.constrained.rows.inputs import NO_INPUTS, SIGNATURE, ConstraintInputs, row_inputs
from delassus.constrained.rows.problem import Problem
from delassus.constrained.rows.weights import Weighted
from delassus.constrained.solvers import dual, prox_ltl
from delassus.constrained.solvers.solver import Solver, State, solve
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.constraints.mechanism.rows import against_gravity
from delassus.dynamics.tree.articulated import FreeJoint, free_joint
from delassus.dynamics.tree.poses import Pair
from delassus.dynamics.tree.sweep import ZERO, Inward, propagate_acceleration, world_acceleration
from delassus.model.parts import WORLD


@kernel(SIGNATURE, inputs={"rows": row_inputs()})
def prox_pv(
    mechanism: Mechanism, q: Traced, v: Traced, tau: Traced, *, iterations: int = 3, rows: ConstraintInputs = NO_INPUTS
) -> tuple[Floats, Floats]:
    """Accelerations (nv,) [rad/s², m/s²] and constraint forces λ (m,) [N, N·m]; arguments as for `caba`.

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> a, force = dl.prox_pv(loop, loop.model.posture("home"), np.zeros(3), np.zeros(3), iterations=5)
    >>> a.shape, force.shape
    ((3,), (3,))
    """
    return solve(SOLVER, mechanism, (q, v, tau), iterations, rows)


@dataclass(frozen=True)
class Factors:
    """The system of the forces, and data of the sweeps.

    Attributes:
        dual: The system of the forces.
        joints: The joints' factors.
        push: D⁻¹ u (nv,).
        moved: For each joint, K S of the rows that move with it, by row.
        roots: For each link (or the world) where loops close, the multipliers eliminated there.
        l: (m,) the part of each row that does not depend on forces, at its elimination.
    """

    dual: dual.Dual
    joints: list[FreeJoint]
    push: Any
    moved: list[dict[int, Any]]
    roots: dict[int, MultiplierElimination]
    l: Any

    @property
    def spine(self) -> list[int]:
        """The links where loops close, and their carriers."""
        tree = self.dual.weighted.problem.motions.tree
        return sorted({i for root in self.roots if root != WORLD for i in tree.path(root)})


def factor(weighted: Weighted, force: Any = None) -> tuple[Factors, State]:
    """Inward: articulated inertias and forces, and the rows of the constraints; then the first iteration."""
    problem = weighted.problem
    tree, rows, motions = problem.motions.tree, problem.rows, problem.motions
    links = tree.links
    inward = Inward.of(tree, motions.poses, motions.velocity, motions.product)
    A, p = inward.A, inward.p
    K: dict[int, dict[int, Any]] = {i: {} for i in range(WORLD, len(links))}
    on = np.ones(rows.m) if problem.on is None else problem.on
    for i, link_rows in rows.links.items():
        K[i] = {row: on[row] * link_rows.K[j] for j, row in enumerate(link_rows.rows)}
    L = np.array(np.diag(weighted.damping))
    l = -problem.active(against_gravity(rows, motions, problem.k))
    joints: list[Any] = [None] * len(links)
    moved: list[dict[int, Any]] = [{} for _ in links]
    roots: dict[int, MultiplierElimination] = {}
    push = np.zeros(problem.model.nv)
    for i, link in reversed(list(enumerate(links))):
        closing = [r for r in sorted(K[i]) if rows.layout.roots[r] == i]
        if closing:
            roots[i], K[i] = eliminate(closing, K[i], L)
            A[i] = roots[i].spring(A[i])
            p[i], l = roots[i].press(p[i], l)
        joint = joints[i] = free_joint(link, A[i])
        u = joint.force(problem.tau, p[i])
        push[joint.at] = joint.push(u)
        driven = _joint_rows(problem, i, on)
        KS: dict[int, Any] = {}
        for r in sorted({*K[i], *driven}):
            link_rows = K[i].get(r, np.zeros(6))
            KS[r], *parent_part = joint.carry(link_rows[:3], link_rows[3:], driven.get(r))
            # (K - K S Wᵀ) X: the coefficients of the parent's acceleration; rows transform like forces.
            parent_row = np.concatenate(motions.poses[i].force_to_parent(*parent_part))
            above = K[link.parent]
            above[r] = above[r] + parent_row if r in above else parent_row
        moved[i] = KS
        b = motions.product[i]
        free = joint.answer(push[joint.at], b)  # D⁻¹ (u - Uᵀ b)
        for j, r in enumerate(KS):
            pulled = joint.push(KS[r])
            for t in list(KS)[: j + 1]:
                L[r, t] = L[r, t] + pulled @ KS[t]
            l[r] = l[r] + KS[r] @ free
            if r in K[i]:
                l[r] = l[r] + K[i][r][:3] @ b[0] + K[i][r][3:] @ b[1]
        inward.hand_on(i, joint, u)
    for r, x in K[WORLD].items():
        l[r] = l[r] - x[:3] @ np.array(tree.gravity)
    if K[WORLD]:
        roots[WORLD], _ = eliminate(sorted(K[WORLD]), None, L)

    def respond(change: Any) -> Any:
        correction = _eliminate_loads(factors, change)
        return _outward(factors, factors.spine, *correction)[1]

    factors = Factors(dual.Dual(weighted, respond), joints, push, moved, roots, l)
    return factors, dual.start(factors.dual, force)


def iterate(factors: Factors, state: State) -> State:
    """One more iteration."""
    return dual.iterate(factors.dual, state)


def finish(factors: Factors, state: State) -> tuple[Any, Any]:
    """Outward: the accelerations of all joints under the forces λ."""
    everything = list(range(len(factors.joints)))
    push, l = _eliminate_loads(factors, factors.dual.change(state.before))
    return _outward(factors, everything, push, l, state.force)[0], state.force


def shift_target(factors: Factors, r: Any) -> Factors:
    """The factors for rows with the target residual r (m,) instead of zero."""
    return replace(factors, dual=dual.shift_target(factors.dual, r))


SOLVER = Solver("prox_pv", factor, iterate, shift_target, finish, penalties=False, in_joint_space=prox_ltl.SOLVER)


def _eliminate_loads(factors: Factors, change: Any) -> tuple[Any, Any]:
    """D⁻¹ u (nv,) of all joints, and l (m,) of all rows at their elimination, after a change of l (or without one).

    A row continues past its root, where its multiplier is eliminated, as a force; it changes the other rows that the
    joints between the root and the base move.
    """
    if change is None:
        return factors.push, factors.l
    problem = factors.dual.weighted.problem
    tree, motions = problem.motions.tree, problem.motions
    push, change = np.array(factors.push), np.array(change)
    p: dict[int, Pair] = dict.fromkeys(factors.spine, ZERO)
    for i in reversed(factors.spine):
        link, joint = tree.links[i], factors.joints[i]
        if i in factors.roots:
            p[i], change = factors.roots[i].press(p[i], change)
        u, f, n = joint.carry(-p[i][0], -p[i][1])
        increment = joint.push(u)
        push[joint.at] = push[joint.at] + increment
        for r, KS in factors.moved[i].items():
            change[r] = change[r] + KS @ increment
        if link.parent >= 0:
            f, n = motions.poses[i].force_to_parent(f, n)
            p[link.parent] = (p[link.parent][0] - f, p[link.parent][1] - n)
    return push, factors.l + change


def _outward(factors: Factors, links: list[int], push: Any, l: Any, forces: Any = None) -> tuple[Any, Any]:
    """Accelerations (nv,) of the joints of `links`, and the forces (m,) of all rows, unless they are `known`."""
    problem = factors.dual.weighted.problem
    tree, motions = problem.motions.tree, problem.motions
    acceleration: dict[int, Pair] = {WORLD: world_acceleration(tree)}
    a, force = np.zeros(problem.model.nv), np.zeros(problem.rows.m) if forces is None else forces
    if forces is None and WORLD in factors.roots:
        force[factors.roots[WORLD].rows] = factors.roots[WORLD].force(l, None, force)
    for i in links:
        link, joint = tree.links[i], factors.joints[i]
        link_acceleration = propagate_acceleration(motions.poses[i], acceleration[link.parent], motions.product[i])
        joint_acceleration = joint.answer(push[joint.at], link_acceleration)
        if factors.moved[i]:
            u = np.zeros(link.motion.nv)
            for row, KS in factors.moved[i].items():
                u = u + KS * force[row]
            joint_acceleration = joint_acceleration + joint.push(u)
        acceleration[i] = joint.accelerate(link_acceleration, joint_acceleration)
        a[joint.at] = joint_acceleration
        if forces is None and i in factors.roots:
            force[factors.roots[i].rows] = factors.roots[i].force(l, acceleration[i], force)
    return a, force


def _joint_rows(problem: Problem, link: int, on: Any) -> dict[int, Any]:
    """Coefficients of rows for the velocities of a link's joint (n,), by row."""
    driven: dict[int, Any] = {}
    n = problem.motions.tree.links[link].motion.nv
    for dof in problem.rows.of_joint(link):
        coefficients = driven.setdefault(dof.row, np.zeros(n))
        coefficients[dof.k] = coefficients[dof.k] + dof.factor * on[dof.row]
    return driven
