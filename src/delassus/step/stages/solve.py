"""The contact problem of a step, by Newton's method from the impulses of the step before.

Most steps change little: after a few sweeps of Gauss–Seidel, λ = P(λ - σ) is solved in one or two iterations. A robot
on flat feet has more contact points than motions, so impulses are not unique and G is singular: each iteration adds ρ
to it, as the proximal point method does, which leaves the solution what it is. A small ρ is fast near the solution;
where it goes in circles, a large one that shrinks leads out of them. Attempts with kinks rounded by a radius e, as in
`newton`, come last. One loop for all of it: a linear system is most of the code, and there is one. The error in an
iteration is the residual that the next one starts from.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import while_loop
from delassus.contact.cones.kinds import Free
from delassus.contact.cones.layout import Layout
from delassus.contact.solvers.choice import sweeps_for
from delassus.contact.solvers.newton import ATTEMPTS
from delassus.contact.solvers.progress import FOREVER
from delassus.contact.solvers.scaled import Scaled, shape_of
from delassus.linalg.ldl import ldl_regularized
from delassus.linalg.schur import Eliminated, eliminate_rows
from delassus.step.stages.carried import Carried
from delassus.step.stages.sharing import Sharing
from delassus.step.stages.types import SolverLimits

QUICKLY: Final = 4.0
"""Iterations of the contact solve after which an item of a batch is left to a second call, with others like it."""

LONGER: Final = 20.0
"""Those after which an item is left to a third call: lanes wait for the slowest of them."""

WANTED: Final = (1e-3, 0.1, 1.0, 1.0, 10.0)
"""The share of the tolerance that is enough after so many iterations, the last one after all others.

What rests gets ever more exact, as there is an iteration in each step until next to nothing is left. After many,
contacts stick, and what is left is how feet that have more points than motions share their friction.
"""

EAGER: Final = (
    # As in `ATTEMPTS`, but e shrinks with every iteration.
    (0.0, 0.0, 24.0, 1.0),
    (0.1, 0.3, 18.0, 1.0),
    (1.0, 0.3, 20.0, 0.0),
    (0.01, 0.3, 16.0, 1.0),
    (1.0, 0.5, 34.0, 0.0),
)
"""The attempts that come first; the very first starts from the impulses of the step before."""

SWEEPS: Final = 6.0
"""Of Gauss–Seidel before it."""

NEAR: Final = 1e-7
"""ρ, as a share of a contact's own response, in the first iterations, and the least later on."""

AT_ONCE: Final = 2.0
"""Iterations with this ρ; then it is `FAR`, and shrinks."""

FAR: Final = 1e-2
SHRINKS: Final = 0.3


_EPSILON: Final = 1e-11
"""The share of their own response that rows of loops yield by: far below the tolerance."""


class Solved(NamedTuple):
    """Impulses (m,), the largest residual [m/s], iterations, and whether the tolerance was met."""

    impulse: Any
    residual: Any
    iterations: Any
    done: Any


class _At(NamedTuple):
    """λ and λ - σ (m,), e, ρ, attempt and iterations made in it, the best λ and its error, all iterations."""

    impulse: Any
    ahead: Any
    e: Any
    rho: Any
    attempt: Any
    made: Any
    best: Any
    error: Any
    count: Any


def _limit(problem: Scaled, scale: Any) -> Any:
    """The residual (m,) that rows may have at a tolerance of one: the scale of velocities, gaps that close left out.

    Rows of constraints and joints may have other units: a small part of what the motion as a whole has is enough.
    """
    limit, scalars = scale / problem.root, problem.layout.scalars
    energy = np.concatenate([np.full(scalars, 1e-4), np.zeros(len(limit) - scalars)]) * np.max(np.abs(problem.g))
    return np.maximum(limit, energy)


def solve_impulses(
    layout: Layout,
    sharing: Sharing | None,
    S: Any,
    g: Any,
    numbers: dict[str, Any],
    start: Any,
    scale: Any,
    limits: SolverLimits,
) -> Solved:
    """Impulses that obey the laws of contact.

    Args:
        layout: The cones.
        sharing: What rows have of motions; None if they are the same.
        S: (motions, motions) the response of motions: G = P S Pᵀ.
        g: (m,) [m/s].
        numbers: Friction and bounds, as `Scaled.of` takes them.
        start: (m,) impulses to start from [N·s].
        scale: Of velocities [m/s].
        limits: When it ends.
    """
    loops, others = list(layout.rows(Free)), [row for row in range(layout.m) if row not in layout.rows(Free)]
    shift = len(S) - layout.m  # rows that are no contacts are motions, in their order
    moving = [k for k in range(len(S)) if k - shift not in loops]
    if not moving:
        impulse = _without_loops(S, g).impulses(np.zeros(0))
        return Solved(impulse, np.array(0.0), np.array(0.0), np.array(True))
    inner = sharing and sharing._replace(P=sharing.P[others][:, moving])
    own = np.stack([S[k, k] for k in moving] if inner is None else [p @ S[moving][:, moving] @ p for p in inner.P])
    if not loops:
        return _solved(layout, Carried.of(layout, inner, S, own, g, numbers), numbers, start, scale, limits)
    first = [k + shift for k in loops]
    rest = _without_loops(S[first + moving][:, first + moving], g[loops])
    cones = Layout(tuple(cone for cone in layout.cones if not isinstance(cone, Free)))
    asked = g[others] + (rest.shift if inner is None else inner.P @ rest.shift)
    problem = Carried.of(cones, inner, rest.S, own, asked, numbers)
    found = _solved(cones, problem, numbers, start[others], scale, limits)
    impulse = np.zeros(layout.m)
    impulse[others] = found.impulse
    impulse[loops] = rest.impulses(found.impulse if inner is None else inner.P.T @ found.impulse)
    return found._replace(impulse=impulse)


def _without_loops(S: Any, g: Any) -> Eliminated:
    """The response of motions without those of closed loops, which come first and have the velocities g (loops,).

    Made once in a step, so that iterations have fewer rows. Redundant rows share their impulses by the ε in their
    factors, and loops stay as open as ε λ, until they are projected.
    """
    return eliminate_rows(S, g, lambda loops, sides: ldl_regularized(loops, _EPSILON).solve(sides))


def _solved(
    layout: Layout, problem: Carried, numbers: dict[str, Any], start: Any, scale: Any, limits: SolverLimits
) -> Solved:
    """The same, without loops."""
    every = problem.rows
    rows = every._replace(limit=_limit(every, scale))
    factors = shape_of(layout, *(numbers.get(name) for name in ("friction", "torsional", "rolling")))
    schedule, size = np.array((*EAGER, *ATTEMPTS)), np.max(np.abs(rows.g))
    zero, inverse = np.array(0.0), 1.0 / rows.limit
    begins, shrinks, lengths, where = (schedule[:, k] for k in range(4))

    def at(impulse: Any) -> tuple[Any, Any, Any]:
        """λ - σ, its projection, and the error."""
        ahead = impulse - problem.velocity(impulse)
        projected = rows.smooth(ahead, 0.0)[0]
        return ahead, projected, np.max(np.abs(projected - impulse) * inverse)

    def begun(impulse: Any, attempt: Any) -> tuple[Any, Any]:
        """Where an attempt starts: sweeps of Gauss–Seidel find most contacts' modes."""
        wanted = np.where(attempt < 0.5, SWEEPS, np.where(attempt < 1.5, sweeps_for(layout.m), 0.0))
        swept, velocity = problem.swept(impulse, wanted)
        return swept, swept - velocity

    def step(last: _At) -> _At:
        impulse, ahead = cond(last.made < 0.5, begun, (last.impulse, last.ahead), last.impulse, last.attempt)
        y, jacobians = rows.smooth(ahead, last.e)
        far = np.max(np.abs(y - impulse))
        impulse = impulse + problem.change(jacobians, last.rho, y - impulse, NEAR)
        ahead, projected, error = at(impulse)
        better = error < last.error
        best, least = np.where(better, projected, last.best), np.where(better, error, last.error)
        # In later attempts: as soon as the rounded problem is solved to the size of its rounding, round less.
        eager = float(len(EAGER)) - 0.5
        less = (far <= last.e) | (last.attempt < eager)
        e = np.where(less, last.e * np.take(shrinks, last.attempt), last.e)
        made = last.made + 1.0
        rho = np.where(made == AT_ONCE, FAR, np.where(made < AT_ONCE, NEAR, np.maximum(SHRINKS * last.rho, NEAR)))
        over = (made + 0.5 > np.take(lengths, last.attempt)) | ~np.isfinite(np.sum(impulse))
        attempt = np.where(over, last.attempt + 1.0, last.attempt)
        impulse = np.where(over, np.where(np.take(where, attempt) > 0.5, best, 0.0), impulse)
        e = np.where(over, np.take(begins, attempt) * size, e)
        rho = np.where(attempt < 0.5, rho, NEAR)
        return _At(impulse, ahead, e, rho, attempt, np.where(over, 0.0, made), best, least, last.count + 1.0)

    def goes_on(last: _At) -> Any:
        wanted = np.take(np.array(WANTED), np.minimum(last.count, float(len(WANTED) - 1))) * limits.tolerance
        return (last.error > wanted) & (last.count < limits.iterations) & (last.attempt < float(len(schedule)) - 0.5)

    begin = rows.taken(start, factors)
    ahead, projected, error = at(begin)
    first = _At(begin, ahead, zero, zero + NEAR, zero, zero, projected, error, zero)
    found: _At = while_loop(goes_on, step, first, FOREVER)
    return Solved(
        rows.given(found.best, factors),
        found.error * (np.max(rows.limit * rows.root) if layout.scalars else scale),
        found.count,
        found.error <= WANTED[-1] * limits.tolerance,
    )
