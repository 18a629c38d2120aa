"""Newton's method on joint velocities and contact impulses together.

Unknown are x (nv,), which says velocity and impulse of each joint (see `joint_laws`), and impulses λ of contacts:

    F(x, λ) = M v - rhs - p - Jᵀ λ = 0,    v = φ(x),  p = ρ φ(x) - x
    y(x, λ) = P(λ - R⁻¹ (J v + offset)) - λ = 0.

An iteration eliminates dλ contact by contact (see `contact_steps`) and dx joint by joint; what is left is one pass of
the articulated-body recursion (see `tree_solve`),

    (M + diag(b) + Jᵀ C J) dv = -F + Jᵀ B⁻¹ y,   dx = (ρ + b) dv, or the force that holds a locked joint,

so that neither a Delassus matrix nor a row for each joint is formed: O(n) operations for a robot of n joints, whatever
touches. Contacts between bodies join two branches of the tree; where some push, their rows Jₚ are added by Woodbury's
formula, with the recursion as the inner inverse T⁻¹:

    dv = dv₀ - T⁻¹ Jₚᵀ μ,   (I + Cₚ Jₚ T⁻¹ Jₚᵀ) μ = Cₚ Jₚ dv₀.

The merit Σ F²/ρ + Σ R y² decides how far a step goes; where it goes less than a quarter of its way, the
proximal ε, which holds impulses near what they are, grows. After a few such steps a whole one is made, with another ρ:
between a locked joint and one that slides, the merit of one ρ may have a valley from which neither leads out.

Choose it for trees with dry friction, limits and servos that saturate; a few contacts on a robot without joint laws
cost less by their Delassus matrix (`stages.solve`), and that is also what solves what ends here unsolved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import UNBOUNDED, while_loop
from delassus.compiler.tracing.flow.control import map as map_rows
from delassus.linalg.lu import solve_without_pivots
from delassus.model.links import Links
from delassus.step.articulated.contact_steps import contact_step, project
from delassus.step.articulated.joint_laws import JointLaws
from delassus.step.articulated.line_search import PATIENCE, SHORTEST, SMALL, adapt_growth, is_decrease, proximal
from delassus.step.articulated.tree_solve import TreeFactors, factor_supported_tree

_METRICS: Final = (10.0, 1000.0, 1.0, 100.0)
"""ρ of joints as multiples of their inertia. A joint of a leg that stands moves the whole robot, so that the first is
more than one; after a few short steps the next one is taken."""

_FEW: Final = 4
"""Contacts between bodies, in the last slots, that are joined by code of their own: one patch has as many."""


class TreeProblem(NamedTuple):
    """The equations of a step.

    Attributes:
        tree: Of the robot.
        V: Of each velocity its motion (6,) about a center, in the world's axes.
        inertias: (6, 6) of the links there.
        diagonal: (nv,) what M has beside them on its diagonal: rotors, dampers, servos without limits.
        M: (nv, nv) with `diagonal`.
        rhs: (nv,) M v_free.
        laws: Of the joints, with their inertia (nv,) for ρ.
        J: Of each contact (k + 1, nv), k tangents first, the normal last.
        rows: Of each contact (k + 1, 6), the same for the motion of its body.
        shares: Of each contact, by links that it may be on, 1.0 or a traced share: 1 of its own link, 0 of others.
        between: Of each contact whether it is between two bodies: False, True, or traced.
        offset: Of each contact (k + 1,) [m/s].
        friction: (contacts,) coefficients.
        R: (contacts, k + 1) [1/kg], about the response of a contact's rows.
    """

    tree: Links
    V: list[Any]
    inertias: list[Any]
    diagonal: Any
    M: Any
    rhs: Any
    laws: JointLaws
    J: list[Any]
    rows: list[Any]
    shares: list[dict[int, Any]]
    between: list[Any]
    offset: list[Any]
    friction: Any
    R: Any

    def in_metric(self, number: Any) -> JointLaws:
        """The laws of the joints with ρ of the metric of a number ()."""
        return self.laws._replace(rho=np.take(np.array(_METRICS), number) * self.laws.rho)

    def supports(self, stiffness: list[Any]) -> dict[int, Any]:
        """K (6, 6) of links, from those of the contacts (k + 1, k + 1)."""
        result: dict[int, Any] = {}
        for rows, shares, C in zip(self.rows, self.shares, stiffness, strict=True):
            K = rows.T @ (C @ rows)
            for link, share in shares.items():
                part = K if isinstance(share, float) else share * K
                result[link] = result[link] + part if link in result else part
        return result


class Residuals(NamedTuple):
    """F (nv,), of each contact z and y (contacts, k + 1), the merit, and the largest error of a velocity [m/s]."""

    F: Any
    z: Any
    y: Any
    merit: Any
    error: Any


def evaluate(problem: TreeProblem, laws: JointLaws, x: Any, impulse: Any) -> Residuals:
    """The residuals at x (nv,), by joint laws with their ρ, and impulses (contacts, k + 1)."""
    v, p = laws.evaluate(x)
    F = problem.M @ v - problem.rhs - p
    merit, error = np.array(0.0), np.array(0.0)
    z, y = np.array(impulse), np.array(impulse)
    for k, J in enumerate(problem.J):
        F = F - J.T @ impulse[k]
        R = problem.R[k]
        z[k] = impulse[k] - (J @ v + problem.offset[k]) * (1.0 / R)
        y[k] = project(z[k], R, problem.friction[k]) - impulse[k]
        merit = merit + np.sum(y[k] * y[k] * R)
        error = np.maximum(error, np.max(np.abs(y[k]) * R))
    merit = merit + np.sum(F * F * (1.0 / laws.rho))
    return Residuals(F, z, y, merit, np.maximum(error, np.max(np.abs(F) * (1.0 / problem.laws.rho))))


def newton_step(problem: TreeProblem, laws: JointLaws, x: Any, now: Residuals, epsilon: Any) -> tuple[Any, Any]:
    """dx (nv,) and dλ (contacts, k + 1)."""
    modes, rho = laws.modes(x), laws.rho
    steps = [
        contact_step(now.z[k], now.y[k], problem.R[k], problem.friction[k], epsilon) for k in range(len(problem.J))
    ]
    slopes = np.stack([np.array(0.0 if mode.slope is None else mode.slope) for mode in modes])
    locked = [mode.locked for mode in modes]
    factors = factor_supported_tree(
        problem.tree,
        problem.V,
        problem.inertias,
        problem.supports([step.C for step in steps]),
        problem.diagonal + slopes,
        locked,
    )
    tau = -now.F
    for J, step in zip(problem.J, steps, strict=True):
        tau = tau + J.T @ step.alone
    dv, force = factors.solve(tau)
    if any(between is not False for between in problem.between):
        dv, force = _join_branches(problem, factors, [step.C for step in steps], now.z, dv, force)
    dx = (rho + slopes) * dv
    for k, held in enumerate(locked):
        if held is not None:
            dx[k] = np.where(held, force[k], dx[k])
    change = [step.alone - step.C @ (J @ dv) for J, step in zip(problem.J, steps, strict=True)]
    return dx, np.stack(change) if change else np.array(now.z)


def _join_branches(
    problem: TreeProblem, factors: TreeFactors, stiffness: list[Any], z: Any, dv: Any, force: Any
) -> tuple[Any, Any]:
    """dv and the forces (nv,) of locked joints, with contacts between bodies.

    These have the last slots, after contacts with the ground, and are seldom more than a few: m rows take some m³
    operations, so that few of them have code of their own.
    """
    some = [k for k, between in enumerate(problem.between) if between is not False]
    pushing = {k: np.array(problem.between[k]) & (z[k, -1] > 0.0) for k in some}

    def join(chosen: list[int]) -> Callable[[Any, Any], tuple[Any, Any]]:
        J = np.concatenate([problem.J[k] for k in chosen])
        C = np.stack([np.where(problem.between[k], stiffness[k], 0.0) for k in chosen])

        def joined(dv: Any, force: Any) -> tuple[Any, Any]:
            motions, forces = map_rows(factors.solve, J)
            sides = np.concatenate([J @ motions.T, (J @ dv)[:, None]], 1)
            pushed = map_rows(lambda C, sides: C @ sides, C, sides.reshape(len(chosen), -1, sides.shape[1]))
            A = pushed.reshape(sides.shape)
            mu = solve_without_pivots(np.eye(len(J)) + A[:, :-1], A[:, -1])
            return dv - motions.T @ mu, force - forces.T @ mu

        return joined

    last = some[-_FEW:]
    late = np.any(np.stack([pushing[k] for k in last]))
    if last == some:
        return cond(late, join(some), (dv, force), dv, force)
    early = np.any(np.stack([pushing[k] for k in some[:-_FEW]]))
    every = cond(early, join(some), (dv, force), dv, force)
    return cond(late & ~early, join(last), every, dv, force)


class NewtonState(NamedTuple):
    """An iterate.

    Attributes:
        metric: () the number of the metric of joints.
        x: (nv,) in that metric.
        impulse: (contacts, k + 1).
        now: Residuals there.
        growth: () by what ε has grown.
        short: () short steps in a row.
        count: () iterations.
    """

    metric: Any
    x: Any
    impulse: Any
    now: Residuals
    growth: Any
    short: Any
    count: Any


class _Trial(NamedTuple):
    """A point on the way of a step: the share of it, x, impulses, residuals, and whether the merit fell enough."""

    share: Any
    x: Any
    impulse: Any
    now: Residuals
    good: Any


def iterate(
    problem: TreeProblem, v: Any, p: Any, impulse: Any, should_continue: Callable[[NewtonState], Any]
) -> NewtonState:
    """Iterations from velocities v and impulses p (nv,) of joints, and impulses (contacts, k + 1)."""

    def change_metric(last: NewtonState) -> NewtonState:
        """The iterate in the next metric."""
        v, p = problem.in_metric(last.metric).evaluate(last.x)
        metric = np.where(last.metric < len(_METRICS) - 1.5, last.metric + 1.0, 0.0)
        laws = problem.in_metric(metric)
        x = laws.rho * v - p
        now = evaluate(problem, laws, x, last.impulse)
        return last._replace(metric=metric, x=x, now=now)

    def step(last: NewtonState) -> NewtonState:
        whole = last.short > PATIENCE
        last = cond(whole, change_metric, last, last)
        laws = problem.in_metric(last.metric)
        size = np.sum(last.impulse * last.impulse * problem.R) + SMALL
        epsilon = proximal(last.growth, last.now.merit, size)
        dx, change = newton_step(problem, laws, last.x, last.now, epsilon)

        def shorten(trial: _Trial) -> _Trial:
            share = 0.5 * trial.share
            x, impulse = last.x + share * dx, last.impulse + share * change
            now = evaluate(problem, laws, x, impulse)
            return _Trial(share, x, impulse, now, is_decrease(now.merit, share, last.now.merit) | whole)

        start = _Trial(np.array(2.0), last.x, last.impulse, last.now, np.array(False))
        trial = while_loop(lambda trial: ~trial.good & (trial.share > SHORTEST), shorten, start, UNBOUNDED)
        keep = trial.good | (trial.now.merit < last.now.merit)
        x, impulse = np.where(keep, trial.x, last.x), np.where(keep, trial.impulse, last.impulse)
        now = Residuals(*(np.where(keep, a, b) for a, b in zip(trial.now, last.now, strict=True)))
        growth, short = adapt_growth(last.growth, last.short, trial.share)
        return NewtonState(last.metric, x, impulse, now, growth, short, last.count + 1.0)

    first = problem.in_metric(np.array(0.0))
    x = first.rho * v - p
    now = evaluate(problem, first, x, impulse)
    start = NewtonState(np.array(0.0), x, impulse, now, np.array(1.0), np.array(0.0), np.array(0.0))
    last: NewtonState = while_loop(should_continue, step, start, UNBOUNDED)
    return last
