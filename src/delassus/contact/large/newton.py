"""Newton's method on λ = P(λ - σ) over a batch, with P smoothed by a radius e that shrinks.

Each iteration solves (I - D + D G) Δλ = P(λ - σ) - λ, D the Jacobian of P, for the m rows of contacts that are not
open, with one factorization: m³/3 multiplications by LAPACK, or SuperLU where each contact couples with few others. A
line search halves the step until ‖P(λ - σ) - λ‖ decreases. Piles of a hundred contacts with mass ratios of 10⁴ take ten
to forty iterations; without the line search they cycle. When the residual of the smoothed problem falls below its
smoothing error, e shrinks. If an attempt fails, the next one uses other radii, or full steps.

References: X. Chen, L. Qi, D. Sun, smoothing Newton methods (1998); V. Acary, M. Brémond, O. Huber (2018).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from delassus.contact.large.progress import Best, Budget
from delassus.contact.large.rows import Array, Group, Rows, groups_of
from delassus.contact.large.sparse import solve_sparse, sparse_matrices
from delassus.contact.solvers.registry import register_solver
from delassus.contact.systems.protocol import BATCH, NEWTON
from delassus.linalg.filtered_system import regularization


class Attempt(NamedTuple):
    """Options of one attempt of Newton's method.

    `radius` is the initial e, relative to the velocity scale; `shrinks` its factor of decrease; `iterations` the
    maximum number of iterations; `from_best` whether the attempt starts at the best impulses instead of zero;
    `searches` whether it uses a line search.
    """

    radius: float
    shrinks: float
    iterations: int
    from_best: bool
    searches: bool


WARM: Final = 2
"""The first attempts start from a good initial guess."""

ATTEMPTS: Final = (
    Attempt(0.0, 0.0, 5, True, False),
    Attempt(0.01, 0.1, 20, True, True),
    Attempt(1.0, 0.6, 50, False, True),
    Attempt(10.0, 0.5, 50, False, True),
    Attempt(0.1, 0.5, 50, False, True),
    Attempt(1.0, 0.6, 60, False, False),
    Attempt(100.0, 0.7, 60, False, True),
    Attempt(1.0, 0.3, 50, False, True),
    Attempt(10.0, 0.7, 70, False, False),
    Attempt(3.0, 0.8, 80, False, True),
    Attempt(0.01, 0.3, 50, False, True),
    Attempt(0.1, 0.8, 100, False, False),
    Attempt(30.0, 0.8, 110, False, False),
)

_RADIUS, _SHRINKS, _LENGTH, _FROM_BEST, _SEARCHES = np.array(ATTEMPTS, float).T
_LONGER_FROM: Final = 600
"""Number of rows above which the maximum number of iterations grows in proportion."""

_SMALLEST_RADIUS: Final = 1e-15
_HALVINGS: Final = 3
"""Maximum number of halvings. The shortest step is taken even if the merit rises, to leave local minima of the
merit.
"""

_OPEN: Final = 1e-9
"""A contact counts as open in Newton's equations if all slopes of its projection are below this."""

_DECREASE: Final = 1e-4
"""Required relative decrease of the merit ‖P(λ - σ) - λ‖, per unit of step length."""


@register_solver("newton", needs={BATCH, NEWTON}, traced=False)
def newton(rows: Rows, best: Best, budget: Budget, first: int = 0, last: int = len(ATTEMPTS)) -> None:
    """Improve the best impulses by attempts `first` to `last`, exclusive."""
    live = best.open(budget)
    if not len(live) or first >= last:
        return
    active, scale = rows[live], np.abs(rows.g[live]).max(-1)
    attempt, count = np.full(len(live), first), np.zeros(len(live), int)
    impulse = best.impulse[live].copy() if ATTEMPTS[first].from_best else np.zeros_like(best.impulse[live])
    e = _RADIUS[attempt] * scale
    sparse, longer = sparse_matrices(active), max(1.0, rows.layout.m / _LONGER_FROM)
    while len(live):
        gap, jacobians = shrink_radius(active, impulse, e, _SHRINKS[attempt], scale)
        step = newton_steps(active, jacobians, gap) if sparse is None else solve_sparse(active, sparse, jacobians, gap)
        impulse = search_line(active, impulse, step, gap, e, _SEARCHES[attempt] > 0.5)
        allowed = active.project(impulse)
        best.count[live] += 1
        best.keep(live, allowed, active.error(allowed, active.velocity(allowed)))
        count += 1
        exhausted = (count >= longer * _LENGTH[attempt]) | ~np.isfinite(impulse.sum(-1))
        if exhausted.any():
            attempt[exhausted] += 1
            count[exhausted] = 0
            following = np.minimum(attempt[exhausted], len(ATTEMPTS) - 1)
            impulse[exhausted] = np.where(_FROM_BEST[following, None] > 0.5, best.impulse[live[exhausted]], 0.0)
            e[exhausted] = _RADIUS[following] * scale[exhausted]
        unfinished = best.is_open(budget, live) & (attempt < last)
        if not unfinished.all():
            live, active = live[unfinished], active[np.flatnonzero(unfinished)]
            sparse = None if sparse is None else [sparse[k] for k in np.flatnonzero(unfinished)]
            impulse, e, attempt, count, scale = (a[unfinished] for a in (impulse, e, attempt, count, scale))


def shrink_radius(rows: Rows, impulse: Array, e: Array, shrinks: Array, scale: Array) -> tuple[Array, list[Array]]:
    """P(λ - σ) - λ (B, m) and the Jacobian of P, after shrinking the radii e (B,) in place as far as the residual
    allows.
    """
    x = impulse - rows.velocity(impulse)
    while True:
        y, jacobians = rows.smooth(x, e[:, None])
        gap = y - impulse
        solved = (np.abs(gap).max(-1) <= e) & (e > _SMALLEST_RADIUS * scale)
        if not solved.any():
            return gap, jacobians
        e[solved] *= shrinks[solved]


def search_line(rows: Rows, impulse: Array, step: Array, gap: Array, e: Array, searches: Array) -> Array:
    """λ + α Δλ (B, m) with the first α of 1, ½, ¼, … for which the merit decreases; α = 1 without line search."""
    trial = impulse + step
    if not searches.any():
        return trial
    share = np.ones((len(impulse), 1))
    merit = np.linalg.norm(gap, axis=-1)
    rising = searches.copy()
    for _ in range(_HALVINGS):
        if not rising.any():
            break
        at = np.flatnonzero(rising)
        selected = rows[at]
        y, _ = selected.smooth(trial[at] - selected.velocity(trial[at]), e[at, None])
        insufficient = np.linalg.norm(y - trial[at], axis=-1) > (1.0 - _DECREASE * share[at, 0]) * merit[at]
        rising[at] = insufficient
        at = at[insufficient]
        share[at] *= 0.5
        trial[at] = impulse[at] + share[at] * step[at]
    return trial


def newton_steps(rows: Rows, jacobians: list[Array], gap: Array) -> Array:
    """Δλ (B, m) of (I - D + D G) Δλ = gap; not finite where the matrix is singular."""
    return np.stack([_newton_step(rows, k, [D[k] for D in jacobians], gap[k]) for k in range(len(gap))])


def _newton_step(rows: Rows, k: int, jacobians: list[Array], gap: Array) -> Array:
    """Δλ (m,) of problem k. Rows of open contacts, D = 0, have Δλ = gap and are left out of the equations."""
    (slope, *blocks), G = jacobians, rows.G[k]
    scalars = np.flatnonzero(slope > _OPEN)
    groups = [(D[acts], at[acts]) for (_, at), D, acts in _acting(rows, blocks)]
    a = np.concatenate([scalars, *(at.ravel() for _, at in groups)])
    step = gap.copy()
    if not len(a):
        return step
    step[a] = 0.0
    response = G @ step if len(a) < len(step) and step.any() else None
    K = G[a[:, None], a] if len(a) < len(step) else G
    right, size = gap[a], len(scalars)
    K, weighted = np.empty_like(K), K
    if size:
        K[:size] = slope[scalars, None] * weighted[:size]
        K[range(size), range(size)] += 1.0 - slope[scalars]
        right[:size] -= 0.0 if response is None else slope[scalars] * response[scalars]
    first = size
    for D, at in groups:
        n, width = at.shape
        block = slice(first, first + at.size)
        K[block] = (D @ weighted[block].reshape(n, width, len(a))).reshape(at.size, len(a))
        columns = (first + np.arange(at.size)).reshape(n, width)
        K[columns[:, :, None], columns[:, None, :]] += np.eye(width) - D
        if response is not None:
            right[block] -= (D @ response[at][..., None]).ravel()
        first = block.stop
    K[range(len(a)), range(len(a))] += regularization()
    try:
        step[a] = np.linalg.solve(K, right)
    except np.linalg.LinAlgError:
        step[:] = np.nan
    return step


def _acting(rows: Rows, blocks: list[Array]) -> list[tuple[Group, Array, Any]]:
    """The groups of contacts with their blocks D (n, k, k), and which contacts (n,) are not open."""
    groups = groups_of(rows.layout)
    return [(group, D, ~(np.abs(D).max((1, 2)) <= _OPEN)) for group, D in zip(groups, blocks, strict=True)]
