"""Solves the contact problem of a step by Newton's method, warm-started with the previous impulses.

Impulses change little from step to step: after a few Gauss–Seidel sweeps, one or two Newton iterations solve
λ = P(λ - σ). A robot on flat feet has more contact rows than motions, so its impulses are not unique and G is singular.
Each iteration adds ρ to G, as the proximal point method does; this does not change the solution. A small ρ converges
fast near the solution. If the iteration cycles, the next attempt starts with a larger ρ and decreases it. The last
attempts smooth the kinks of the projection with a radius e, as in `newton`. All attempts share one loop, since the
linear system is most of the code. The error of an iteration is the residual at its start.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.trace import computing_in
from delassus.contact.cones.kinds import Free
from delassus.contact.cones.layout import Layout
from delassus.contact.cones.parameters import RowParameters
from delassus.contact.solvers.choice import solve_by_name, sweeps_for
from delassus.contact.solvers.newton import ATTEMPTS, Attempt, NewtonRules, NewtonState, Proximal, iterate_newton
from delassus.contact.solvers.progress import Best, Budget, initial_best
from delassus.contact.systems.scaled import Scaled, shape_of
from delassus.linalg.ldl import ldl_regularized
from delassus.linalg.schur import ReducedSystem, eliminate_rows
from delassus.step.stages.body_motions import BodyMotions
from delassus.step.stages.body_space import BodySpaceProblem
from delassus.step.stages.types import SolverLimits

QUICKLY: Final = 4.0
"""Iterations of the first call; environments that need more are solved by a second call."""

LONGER: Final = 20.0
"""Iterations of the second call; environments that need more are solved by a third, since all lanes wait for the
slowest."""

WANTED: Final = (1e-3, 0.1, 1.0, 1.0, 10.0)
"""Fraction of the tolerance at which the solver ends after 0, 1, 2 … iterations; the last entry applies to all further
ones.

Each step runs at least one iteration, so resting contacts converge further with each step. After many iterations,
contacts stick, and only the distribution of friction among redundant contact points still changes.
"""

EAGER: Final = (
    Attempt(0.0, 0.0, 24.0, 1.0),
    Attempt(0.1, 0.3, 18.0, 1.0),
    Attempt(1.0, 0.3, 20.0, 0.0),
    Attempt(0.01, 0.3, 16.0, 1.0),
    Attempt(1.0, 0.5, 34.0, 0.0),
)
"""The first attempts of Newton's method; the very first starts from the impulses of the previous step."""

SWEEPS: Final = 6.0
"""Number of Gauss–Seidel sweeps before Newton's method."""

PROXIMAL: Final = {
    "float64": Proximal(near=1e-7, far=1e-2, at_once=2.0, shrinks=0.3),
    "float32": Proximal(near=1e-5, far=1e-2, at_once=2.0, shrinks=0.3),
}
"""Smallest ρ for each precision. With a ρ below the resolution of the format, matrices of redundant contacts would be
singular."""


def newton_rules(m: int) -> NewtonRules:
    """Parameters of Newton's method for a problem with m rows near the solution of the previous step."""
    return NewtonRules((*EAGER, *ATTEMPTS), len(EAGER), (SWEEPS, sweeps_for(m)), PROXIMAL[computing_in().name])


ITERATIONS: Final = 20.0
"""Iterations of a solver that is selected by name, for each iteration of Newton's method: its iterations are
cheaper."""

_EPSILON: Final = 1e-11
"""Compliance of loop rows, as a fraction of their response, far below the tolerance."""


class Solved(NamedTuple):
    """Impulses (m,), the largest residual [m/s], iterations, and whether the tolerance was met."""

    impulse: Any
    residual: Any
    iterations: Any
    done: Any


def _limit(problem: Scaled, scale: Any) -> Any:
    """The residual (m,) of each row at a tolerance of one: the velocity scale without the closing velocity of gaps.

    Rows of constraints and joints may have other units; for them it is a small fraction of the scale of motions.
    """
    limit, scalars = scale / problem.root, problem.layout.scalars
    energy = np.concatenate([np.full(scalars, 1e-4), np.zeros(len(limit) - scalars)]) * np.max(np.abs(problem.g))
    return np.maximum(limit, energy)


def solve_impulses(
    layout: Layout,
    sharing: BodyMotions | None,
    S: Any,
    g: Any,
    parameters: RowParameters,
    start: Any,
    scale: Any,
    limits: SolverLimits,
    method: str = "auto",
) -> Solved:
    """Impulses that satisfy the contact laws.

    Args:
        layout: The cones.
        sharing: Rows as functions of the motions; None if each row is a motion.
        S: (motions, motions) the response of motions: G = P S Pᵀ.
        g: (m,) row velocities without impulses, minus their lower bounds [m/s].
        parameters: Friction and bounds.
        start: (m,) initial impulses [N·s].
        scale: Scale of velocities [m/s].
        limits: Termination criteria.
        method: Name of the contact solver.
    """
    loops, others = list(layout.rows(Free)), [row for row in range(layout.m) if row not in layout.rows(Free)]
    shift = len(S) - layout.m  # rows other than contacts are motions, in the order of the rows
    moving = [k for k in range(len(S)) if k - shift not in loops]
    if not moving:
        impulse = _without_loops(S, g).impulses(np.zeros(0))
        return Solved(impulse, np.array(0.0), np.array(0.0), np.array(True))
    inner = sharing and sharing._replace(P=sharing.P[others][:, moving])
    own = np.stack([S[k, k] for k in moving] if inner is None else [p @ S[moving][:, moving] @ p for p in inner.P])
    if not loops:
        return _solved(
            BodySpaceProblem.of(layout, inner, S, own, g, parameters), parameters, start, scale, limits, method
        )
    first = [k + shift for k in loops]
    rest = _without_loops(S[first + moving][:, first + moving], g[loops])
    cones = Layout(tuple(cone for cone in layout.cones if not isinstance(cone, Free)))
    asked = g[others] + (rest.shift if inner is None else inner.P @ rest.shift)
    problem = BodySpaceProblem.of(cones, inner, rest.S, own, asked, parameters)
    found = _solved(problem, parameters, start[others], scale, limits, method)
    impulse = np.zeros(layout.m)
    impulse[others] = found.impulse
    impulse[loops] = rest.impulses(found.impulse if inner is None else inner.P.T @ found.impulse)
    return found._replace(impulse=impulse)


def _without_loops(S: Any, g: Any) -> ReducedSystem:
    """The response of motions after elimination of the loop rows, which come first and have velocities g (loops,).

    It is computed once per step, so that iterations have fewer rows. The ε in the factors distributes impulses over
    redundant rows; loops open by ε λ until stage 7 closes them.
    """
    return eliminate_rows(S, g, lambda loops, sides: ldl_regularized(loops, _EPSILON).solve(sides))


def _solved(
    problem: BodySpaceProblem, parameters: RowParameters, start: Any, scale: Any, limits: SolverLimits, method: str
) -> Solved:
    """Solve a problem without loops."""
    layout = problem.layout
    problem = replace(problem, rows=problem.rows._replace(limit=_limit(problem.rows, scale)))
    rows, rules, zero = problem.rows, newton_rules(layout.m), np.array(0.0)
    factors = shape_of(layout, *parameters.coefficients)

    def should_continue(now: NewtonState) -> Any:
        count = now.best.count
        wanted = np.take(np.array(WANTED), np.minimum(count, float(len(WANTED) - 1))) * limits.tolerance
        open_attempts = now.attempt < float(len(rules.attempts)) - 0.5
        return (now.best.error > wanted) & (count < limits.iterations) & open_attempts

    def ended(found: Best) -> Solved:
        return Solved(
            rows.from_scaled(found.impulse, factors),
            found.error * (np.max(rows.limit * rows.root) if layout.scalars else scale),
            found.count,
            found.error <= WANTED[-1] * limits.tolerance,
        )

    impulse = rows.to_scaled(start, factors)
    if method != "auto":
        budget = Budget(limits.tolerance, ITERATIONS * limits.iterations, warm=True)
        found = solve_by_name(problem.dense(), initial_best(problem, impulse), budget, method).best
        return ended(found)
    ahead = impulse - problem.velocity(impulse)
    projected = rows.smooth(ahead, 0.0)[0]
    best = Best(projected, zero, np.max(np.abs(projected - impulse) * (1.0 / rows.limit)), zero)
    state = NewtonState(impulse, ahead, zero, zero + PROXIMAL[computing_in().name].near, zero, zero, best)
    return ended(iterate_newton(problem, state, rules, should_continue).best)
