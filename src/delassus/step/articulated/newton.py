"""Newton's method on joint velocities and contact impulses together.

The unknowns are x (nv,), which determines velocity and impulse of each joint (see `joint_laws`), and contact impulses
λ:

    F(x, λ) = M v - rhs - p - Jᵀ λ = 0,    v = φ(x),  p = ρ φ(x) - x
    y(x, λ) = P(λ - R⁻¹ (J v + offset)) - λ = 0.

An iteration eliminates dλ for each contact (see `contact_steps`) and dx for each joint. The rest is one pass of the
articulated-body recursion (see `tree_solve`),

    (M + diag(b) + Jᵀ C J) dv = -F + Jᵀ B⁻¹ y,   dx = (ρ + b) dv, or the force that holds a locked joint.

Neither a Delassus matrix nor rows for joints are formed: O(n) operations for a robot of n joints, with any number of
contacts. Contacts between bodies connect two branches of the tree; active ones, with rows Jₚ, are added by Woodbury's
formula, with the recursion as the inner inverse T⁻¹:

    dv = dv₀ - T⁻¹ Jₚᵀ μ,   (I + Cₚ Jₚ T⁻¹ Jₚᵀ) μ = Cₚ Jₚ dv₀.

The merit Σ F²/ρ + Σ R y² determines the step length. After a short step, a full step is taken in another metric, with
another R of the contacts and ρ of the joints: where the modes of contacts and joints change, the merit of one metric
may have a valley from which no mode decreases it, such as redundant points of a foot at the onset of sliding. The
solution does not depend on the metric. The proximal ε, which keeps impulses near their current values, is a share of
the relative error.

Where friction couples normal and tangential motion strongly, such as on legs in dynamic jamming, the merit has local
minima. After some iterations, the method starts again from the velocity without impulses, with contacts that stick: all
that close, then all.

Choose it for trees with joint friction, limits and saturating servos. For a few contacts on a robot without joint laws,
the Delassus matrix (`stages.solve`) is cheaper; it also solves the states that this method leaves unsolved.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import UNBOUNDED, while_loop
from delassus.compiler.tracing.flow.control import map as map_rows
from delassus.linalg.lu import solve_without_pivots
from delassus.model.links import Links
from delassus.step.articulated.contact_steps import ContactStep, contact_step, project
from delassus.step.articulated.joint_laws import JointLaws
from delassus.step.articulated.line_search import SHORTEST, SMALL, Proximal, adapt_growth, is_decrease
from delassus.step.articulated.tree_solve import TreeFactors, factor_supported_tree

_METRICS: Final = ((1.0, 1.0), (10.0, 0.1), (100.0, 10.0), (1000.0, 100.0))
"""ρ of joints as multiples of their inertia, and the factor of R, one after the other. A large R suits impacts that
couple strongly, a small one redundant points. If the first ρ is ten inertias, iterations are up to twice as many."""

_PROXIMAL: Final = Proximal(share=0.1, largest=1.0)
"""With a share of 10⁻³, impulses of redundant points take steps many times their size, and most of them are halved."""

_RESTARTS: Final = (20.0, 32.0)
"""Numbers of iterations after which the method starts again. Of 43 steps of ANYmal that 120 iterations from the last
impulses did not solve, the first restart solves 35 in 5 iterations on average, the second one the others in 8."""

_STICKING: Final = (30.0, 10.0)
"""Normal impulses after a restart, as multiples of what stops a contact alone: at its own closing speed in the first
restart, at the largest speed of all contacts in the second."""

_FEW: Final = 4
"""Number of contacts between bodies that are gathered and coupled by code of their own: one patch has as many."""


class TreeProblem(NamedTuple):
    """The equations of a step.

    Attributes:
        tree: The links of the robot.
        V: For each velocity its twist (6,) about a center, in world axes.
        inertias: (6, 6) of the links there.
        diagonal: (nv,) further diagonal terms of M: rotors, dampers, servos without limits.
        M: (nv, nv) with `diagonal`.
        rhs: (nv,) M v_free.
        laws: Joint laws, with joint inertias (nv,) for ρ.
        J: For each contact (k + 1, nv), k tangents first, the normal last.
        rows: For each contact (k + 1, 6), the same for the twist of its body.
        shares: For each contact, by possible link, 1.0 or a traced value: 1 for its own link, 0 for others.
        between: For each contact whether it is between two bodies: False, True, or traced.
        offset: For each contact (k + 1,) [m/s].
        friction: (contacts,) coefficients.
        R: (contacts, k + 1) [1/kg], near the response of a contact's rows.
        groups: The contacts in groups. The first one is always computed; a later one is skipped if none of its contacts
            is active.
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
    groups: tuple[range, ...]

    def in_metric(self, number: Any) -> TreeProblem:
        """The problem with the ρ and R of a metric, given by its index ()."""
        joints, contacts = (np.take(np.array(factors), number) for factors in zip(*_METRICS, strict=True))
        return self._replace(laws=self.laws._replace(rho=joints * self.laws.rho), R=contacts * self.R)

    def supports(self, group: range, stiffness: list[Any]) -> dict[int, Any]:
        """K (6, 6) of links, from those (k + 1, k + 1) of the contacts of a group."""
        result: dict[int, Any] = {}
        for k, C in zip(group, stiffness, strict=True):
            K = self.rows[k].T @ (C @ self.rows[k])
            for link, share in self.shares[k].items():
                part = K if isinstance(share, float) else share * K
                result[link] = result[link] + part if link in result else part
        return result


class Residuals(NamedTuple):
    """F (nv,), z and y (contacts, k + 1) of contacts, the merit, and the largest velocity error [m/s]."""

    F: Any
    z: Any
    y: Any
    merit: Any
    error: Any


def evaluate(problem: TreeProblem, metric: Any, x: Any, impulse: Any) -> Residuals:
    """The residuals at x (nv,) and impulses (contacts, k + 1) in the metric with an index ().

    Errors of contacts are |R (P(λ - R⁻¹ σ) - λ)| with the R of the problem itself, whatever the metric.
    """
    scaled = problem.in_metric(metric)
    v, p = scaled.laws.evaluate(x)
    F = problem.M @ v - problem.rhs - p
    merit, contact_error = np.array(0.0), np.array(0.0)
    z, y = np.array(impulse), np.array(impulse)

    def add(group: range, F: Any, merit: Any, contact_error: Any) -> tuple[Any, ...]:
        """F, the merit and the error with the contacts of a group, and their z and y."""
        all_z, all_y = [], []
        for k in group:
            J, R = problem.J[k], scaled.R[k]
            F = F - J.T @ impulse[k]
            z = impulse[k] - (J @ v + problem.offset[k]) * (1.0 / R)
            y = project(z, R, problem.friction[k]) - impulse[k]
            merit = merit + np.sum(y * y * R)
            contact_error = np.maximum(contact_error, np.max(np.abs(y) * R))
            all_z.append(z)
            all_y.append(y)
        return F, merit, contact_error, np.stack(all_z), np.stack(all_y)

    for group in problem.groups:
        here = slice(group.start, group.stop)
        if group.start == 0:
            F, merit, contact_error, z[here], y[here] = add(group, F, merit, contact_error)
            continue
        # An open contact without impulse adds nothing. Of its z, only the normal component is used.
        normal = np.stack([(problem.J[k][-1] @ v + problem.offset[k][-1]) / scaled.R[k, -1] for k in group])
        open_z = np.array(impulse[here])
        open_z[:, -1] = impulse[here][:, -1] - normal
        active = ~np.all(open_z[:, -1] <= 0.0) | np.any(impulse[here] != 0.0)  # NaN is active
        unchanged = F, merit, contact_error, open_z, np.zeros(np.shape(open_z))
        F, merit, contact_error, z[here], y[here] = cond(
            active, partial(add, group), unchanged, F, merit, contact_error
        )

    def in_own_metric(z: Any) -> Any:
        change = np.abs(project_in_own_metric(problem, metric, impulse, z) - impulse)
        return np.max(change * problem.R)

    if problem.J:
        contact_error = cond(metric > 0.5, in_own_metric, contact_error, z)
    merit = merit + np.sum(F * F * (1.0 / scaled.laws.rho))
    error = np.maximum(contact_error, np.max(np.abs(F) * (1.0 / problem.laws.rho)))
    return Residuals(F, z, y, merit, error)


def project_in_own_metric(problem: TreeProblem, metric: Any, impulse: Any, z: Any) -> Any:
    """P(λ - R⁻¹ σ) (contacts, k + 1) with the R of the problem, from λ and the z in the metric with an index ()."""
    factor = np.take(np.array([contacts for _, contacts in _METRICS]), metric)
    own = np.array(z)
    for k in range(len(problem.J)):
        own[k] = project(impulse[k] + factor * (z[k] - impulse[k]), problem.R[k], problem.friction[k])
    return own


def newton_step(problem: TreeProblem, x: Any, now: Residuals, epsilon: Any) -> tuple[Any, Any]:
    """dx (nv,) and dλ (contacts, k + 1) of a problem in the metric of x."""
    modes, rho = problem.laws.modes(x), problem.laws.rho
    tau, supports, steps = _contact_terms(problem, now, epsilon)
    slopes = np.stack([np.array(0.0 if mode.slope is None else mode.slope) for mode in modes])
    locked = [mode.locked for mode in modes]
    factors = factor_supported_tree(
        problem.tree, problem.V, problem.inertias, supports, problem.diagonal + slopes, locked
    )
    dv, force = factors.solve(tau)
    if any(between is not False for between in problem.between):
        dv, force = _join_branches(problem, factors, [step.C for step in steps], now.z, dv, force)
    dx = (rho + slopes) * dv
    for k, held in enumerate(locked):
        if held is not None:
            dx[k] = np.where(held, force[k], dx[k])
    change = [step.alone - step.C @ (J @ dv) for J, step in zip(problem.J, steps, strict=True)]
    return dx, np.stack(change) if change else np.array(now.z)


def _contact_terms(problem: TreeProblem, now: Residuals, epsilon: Any) -> tuple[Any, dict[int, Any], list[ContactStep]]:
    """-F + Σ Jᵀ B⁻¹ y (nv,), the sum K (6, 6) of contacts for each link, and the steps of all contacts."""
    tau: Any = -now.F
    supports: dict[int, Any] = {}
    steps: list[ContactStep] = []

    def add(group: range, tau: Any, supports: Any) -> tuple[Any, ...]:
        steps = [contact_step(now.z[k], now.y[k], problem.R[k], problem.friction[k], epsilon) for k in group]
        for k, step in zip(group, steps, strict=True):
            tau = tau + problem.J[k].T @ step.alone
        parts = problem.supports(group, [step.C for step in steps])
        supports = tuple(K + parts[link] if link in parts else K for link, K in zip(links, supports, strict=True))
        return tau, supports, np.stack([step.alone for step in steps]), np.stack([step.C for step in steps])

    for group in problem.groups:
        if group.start == 0:
            first = [contact_step(now.z[k], now.y[k], problem.R[k], problem.friction[k], epsilon) for k in group]
            for k, step in zip(group, first, strict=True):
                tau = tau + problem.J[k].T @ step.alone
            supports = problem.supports(group, [step.C for step in first])
            links, steps = list(supports), first
            continue
        y = now.y[group.start : group.stop]
        active = ~np.all(now.z[group.start : group.stop, -1] <= 0.0) | np.any(y != 0.0)
        unchanged = tau, tuple(supports[link] for link in links), y, np.zeros((*np.shape(y), np.shape(y)[-1]))
        tau, sums, alone, C = cond(active, partial(add, group), unchanged, tau, unchanged[1])
        supports = dict(zip(links, sums, strict=True))
        steps += [ContactStep(alone[k], C[k]) for k in range(len(group))]
    return tau, supports, steps


def _join_branches(
    problem: TreeProblem, factors: TreeFactors, stiffness: list[Any], z: Any, dv: Any, force: Any
) -> tuple[Any, Any]:
    """dv and the forces (nv,) of locked joints, with contacts between bodies.

    Those that push are seldom more than a few, in slots that differ between states. m rows take about m³ operations, so
    a few are gathered by the indices of their slots; all slots are joined if more push.
    """
    slots = [k for k, between in enumerate(problem.between) if between is not False]
    pushing = [np.array(problem.between[k]) & (z[k, -1] > 0.0) for k in slots]
    J, C = np.stack([problem.J[k] for k in slots]), np.stack([stiffness[k] for k in slots])

    def join(J: Any, C: Any, dv: Any, force: Any) -> tuple[Any, Any]:
        rows = J.reshape(-1, J.shape[-1])
        motions, forces = map_rows(factors.solve, rows)
        sides = np.concatenate([rows @ motions.T, (rows @ dv)[:, None]], 1)
        pushed = map_rows(lambda C, sides: C @ sides, C, sides.reshape(len(C), -1, sides.shape[1]))
        A = pushed.reshape(sides.shape)
        mu = solve_without_pivots(np.eye(len(rows)) + A[:, :-1], A[:, -1])
        return dv - motions.T @ mu, force - forces.T @ mu

    def join_all(dv: Any, force: Any) -> tuple[Any, Any]:
        return join(J, np.where(np.stack(pushing)[:, None, None], C, 0.0), dv, force)

    def join_few(dv: Any, force: Any) -> tuple[Any, Any]:
        rank, places = np.array(0.0), [np.array(0.0)] * _FEW
        for k, pushes in enumerate(pushing):
            places = [np.where(pushes & (rank == float(j)), float(k), place) for j, place in enumerate(places)]
            rank = rank + np.where(pushes, 1.0, 0.0)
        chosen = [np.where(rank > float(j), np.take(C, place, axis=0), 0.0) for j, place in enumerate(places)]
        return join(np.stack([np.take(J, place, axis=0) for place in places]), np.stack(chosen), dv, force)

    count = sum(np.where(pushes, 1.0, 0.0) for pushes in pushing)
    if len(slots) <= _FEW:
        return cond(count > 0.0, join_all, (dv, force), dv, force)
    every = cond(count > float(_FEW), join_all, (dv, force), dv, force)
    return cond((count > 0.0) & (count <= float(_FEW)), join_few, every, dv, force)


class NewtonState(NamedTuple):
    """An iterate.

    Attributes:
        metric: () index of the metric.
        x: (nv,) in that metric.
        impulse: (contacts, k + 1).
        now: Residuals there.
        growth: () growth of ε.
        short: () number of consecutive short steps.
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
    """A trial point: the step length, x, impulses, residuals, and whether the merit decreased enough."""

    share: Any
    x: Any
    impulse: Any
    now: Residuals
    good: Any


class NewtonStart(NamedTuple):
    """Joint velocities v and impulses p (nv,), and contact impulses (contacts, k + 1)."""

    v: Any
    p: Any
    impulse: Any


def iterate(
    problem: TreeProblem, start: NewtonStart, free_velocity: Any, should_continue: Callable[[NewtonState], Any]
) -> NewtonState:
    """Iterate from a start; restarts use the velocity (nv,) without impulses."""
    p_free = problem.laws.servo_impulse(free_velocity)

    def change_start(last: NewtonState) -> NewtonState:
        """The iterate in the next metric, or a restart."""
        again = _restarts(last)
        v, p = problem.in_metric(last.metric).laws.evaluate(last.x)
        v, p = np.where(again, free_velocity, v), np.where(again, p_free, p)
        impulse = np.where(again, _sticking_impulses(problem, free_velocity, last.count), last.impulse)
        metric = np.where(again | (last.metric > len(_METRICS) - 1.5), 0.0, last.metric + 1.0)
        x = problem.in_metric(metric).laws.rho * v - p
        growth = np.where(again, 0.0, last.growth)  # the impulses of a restart are no estimates
        return last._replace(
            metric=metric, x=x, impulse=impulse, now=evaluate(problem, metric, x, impulse), growth=growth
        )

    def step(last: NewtonState) -> NewtonState:
        again = _restarts(last)
        whole = (last.short > 0.5) & ~again
        last = cond(whole | again, change_start, last, last)
        scaled = problem.in_metric(last.metric)
        size = np.sum(last.impulse * last.impulse * scaled.R) + SMALL
        epsilon = _PROXIMAL.epsilon(last.growth, last.now.merit, size)
        dx, change = newton_step(scaled, last.x, last.now, epsilon)

        def shorten(trial: _Trial) -> _Trial:
            share = 0.5 * trial.share
            x, impulse = last.x + share * dx, last.impulse + share * change
            now = evaluate(problem, last.metric, x, impulse)
            return _Trial(share, x, impulse, now, is_decrease(now.merit, share, last.now.merit) | whole)

        start = _Trial(np.array(2.0), last.x, last.impulse, last.now, np.array(False))
        trial = while_loop(lambda trial: ~trial.good & (trial.share > SHORTEST), shorten, start, UNBOUNDED)
        keep = trial.good | (trial.now.merit < last.now.merit)
        x, impulse = np.where(keep, trial.x, last.x), np.where(keep, trial.impulse, last.impulse)
        now = Residuals(*(np.where(keep, a, b) for a, b in zip(trial.now, last.now, strict=True)))
        growth, short = adapt_growth(last.growth, last.short, trial.share)
        return NewtonState(last.metric, x, impulse, now, growth, short, last.count + 1.0)

    first = np.array(0.0)
    x = problem.in_metric(first).laws.rho * start.v - start.p
    now = evaluate(problem, first, x, start.impulse)
    begin = NewtonState(first, x, start.impulse, now, np.array(1.0), np.array(0.0), np.array(0.0))
    last: NewtonState = while_loop(should_continue, step, begin, UNBOUNDED)
    return last


def _restarts(now: NewtonState) -> Any:
    """Whether the next iteration starts again."""
    return np.any(np.stack([now.count == count for count in _RESTARTS]))


def _sticking_impulses(problem: TreeProblem, v: Any, count: Any) -> Any:
    """Impulses (contacts, k + 1) along normals, so large that contacts stick, for a restart after `count` iterations
    at v (nv,)."""
    impulse = np.zeros(np.shape(problem.R))
    if not problem.J:
        return impulse
    speeds = np.stack([J @ v + offset for J, offset in zip(problem.J, problem.offset, strict=True)])
    closing, largest = np.maximum(-speeds[:, -1], 0.0), np.max(np.abs(speeds))
    stopped = np.where(count < _RESTARTS[-1], _STICKING[0] * closing, _STICKING[1] * largest)
    impulse[:, -1] = stopped / problem.R[:, -1]
    return impulse
