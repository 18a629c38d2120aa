"""Solves contact problems with many rows in NumPy and LAPACK: from user arrays to impulses, residuals and statuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.constrained.solvers.status import Status
from delassus.contact.cones.layout import Layout
from delassus.contact.large.admm import admm
from delassus.contact.large.newton import ATTEMPTS, WARM, newton
from delassus.contact.large.progress import Best, Budget
from delassus.contact.large.rows import Array, Rows, scale
from delassus.contact.large.sweeps import is_compiled, sweep_repeatedly
from delassus.contact.solvers.registry import find_solver, register_solver
from delassus.contact.systems.protocol import BATCH, MATRIX, NEWTON, SHIFT, SWEEP

_TOGETHER: Final = 4_000_000
"""Maximum number of matrix entries in a chunk of the batch; several copies have to fit into memory."""

_COMPLIANCE: Final = 1e-10
"""Compliance of all rows, relative to their response, if no rigid solution exists."""

_ROUGH: Final = 1e-5
"""Tolerance of that compliant problem."""

_CONTRADICTION: Final = 1e-3
"""Residual, relative to the velocity scale, above which rows are infeasible. Below it they may be rows that hardly
move.
"""

_FIRST: Final = WARM + 4
"""Attempts of Newton's method before other methods are tried."""

_HUGE: Final = 600
"""Number of rows above which a Newton iteration takes as long as ten of ADMM: ADMM is then used earlier and for
longer.
"""

_QUICKLY: Final = ((30, 0, 1), (60, 0, 2))
"""Successive plans, if sweeps are compiled: number of sweeps, first and last attempt of Newton's method."""

_SWEEPS: Final = 100
_ADMM: Final = 200
"""Iterations of the cheaper methods that provide another start for Newton's method."""


def solve_many_rows(
    layout: Layout, arrays: dict[str, Array], law: str, method: str, tolerance: float, iterations: int
) -> tuple[Array, ...]:
    """Impulses (B, m) [N·s], velocities (B, m) [m/s], residuals (B, m) [m/s], iterations (B,), and statuses (B,).

    Args:
        layout: Which rows belong to which cone.
        arrays: G (B, m, m), g (B, m), and optionally friction, bounds, compliance and a start (B, …).
        law: "ncp" or "ccp".
        method: The name of a solver of batches, see `solvers.registry`.
        tolerance: The residual at which a problem is solved, as a share of its largest free velocity.
        iterations: Maximum number of iterations.
    """
    count, m = arrays["g"].shape
    size = max(1, _TOGETHER // (m * m))
    parts = [
        _solve_part(
            layout, {k: x[at : at + size] for k, x in arrays.items()}, law, method, Budget(tolerance, iterations)
        )
        for at in range(0, max(count, 1), size)
    ]
    return tuple(np.concatenate(x) for x in zip(*parts, strict=True))


def _solve_part(layout: Layout, arrays: dict[str, Array], law: str, method: str, budget: Budget) -> tuple[Array, ...]:
    inputs, start = dict(arrays), arrays.get("start")
    finite = _is_finite(arrays)
    for name, x in inputs.items():  # replaces problems that contain NaN or infinity
        inputs[name] = np.where(finite.reshape(-1, *[1] * (x.ndim - 1)), x, 0.0)
    G, g = inputs.pop("G"), inputs.pop("g")
    parameters = {name: x for name, x in inputs.items() if name != "start"}
    with np.errstate(all="ignore"):
        rows = scale(layout, law == "ccp", G, g, parameters)
        best = Best.of(rows, np.zeros_like(rows.g))
        if start is not None:
            best.replace_problems(np.arange(len(g)), Best.of(rows, rows.project(rows.scaled_impulse(inputs["start"]))))
        contradictory = find_solver(method, rows.capabilities, law).solve(rows, best, budget)
        contradictory = np.zeros(len(g), bool) if contradictory is None else contradictory
        impulse = rows.user_impulse(best.impulse)
        compliance = parameters.get("compliance", 0.0)
        velocity = (arrays["G"] @ impulse[..., None])[..., 0] + arrays["g"] + compliance * impulse
        # Recomputed from the returned values, with responses that exclude compliance.
        plain = rows
        if "compliance" in parameters:
            plain = scale(layout, law == "ccp", G, g, {k: x for k, x in parameters.items() if k != "compliance"})
        residual = plain.residual(plain.scaled_impulse(impulse), plain.scaled_velocity(velocity))
        residual = plain.user_residual(residual)
        # The residual cannot be less than the rounding error of impulses that cancel each other.
        rounding = 16.0 * np.finfo(float).eps * np.abs(best.impulse).max(-1) / rows.limit.min(-1)
    status = np.where(best.error <= rounding, int(Status.PRECISION), int(Status.ITERATIONS))
    status = np.where(best.error <= budget.tolerance, int(Status.CONVERGED), status)
    status = np.where(contradictory, int(Status.INFEASIBLE), status)
    finite &= np.isfinite(impulse.sum(-1)) & np.isfinite(velocity.sum(-1))
    status = np.where(finite, status, int(Status.NOT_FINITE))
    return impulse, velocity, residual, best.count.astype(float), status.astype(float)


def _is_finite(arrays: dict[str, Array]) -> NDArray[np.bool_]:
    """(B,) whether all values of a problem are valid; bounds and friction may be infinite."""
    finite = np.ones(len(arrays["g"]), bool)
    for name, x in arrays.items():
        bad = ~np.isfinite(x) if name in ("G", "g", "compliance") else np.isnan(x)
        finite &= ~bad.any(axis=tuple(range(1, x.ndim)))
    return finite


@register_solver("auto", needs={BATCH, MATRIX, SWEEP, SHIFT, NEWTON}, traced=False)
def _solve_thoroughly(rows: Rows, best: Best, budget: Budget) -> NDArray[np.bool_]:
    """Newton's method, then slower and more robust methods, then the least-squares solution if the rows are infeasible.

    Returns (B,) whether they are infeasible.
    """
    warm, huge = bool(best.impulse.any()), rows.layout.m > _HUGE
    if is_compiled(rows.layout):
        _solve_quickly(rows, best, budget, warm)
        if not len(best.open(budget)):
            return np.zeros(len(best.error), bool)
        warm = False
    newton(rows, best, budget, 0 if warm else WARM, WARM + 2 if huge else _FIRST)
    contradictory = np.zeros(len(best.error), bool)
    is_open = best.open(budget)
    if not len(is_open):
        return contradictory
    suspect = is_open[best.error[is_open] > 0.1 * _CONTRADICTION]
    if len(suspect):
        contradictory[suspect] = _solve_contradictory(rows, best, suspect, budget)
    methods = (_from_admm, _try_restarts) if huge else (_from_sweeps, _from_admm, _try_restarts)
    for method in (*methods, admm):
        is_open = best.open(budget)
        is_open = is_open[~contradictory[is_open]]
        if len(is_open):
            selected, progress = rows[is_open], best[is_open]
            method(selected, progress, budget)
            best.replace_problems(is_open, progress)
    return contradictory


def _solve_quickly(rows: Rows, best: Best, budget: Budget, warm: bool) -> None:
    """Compiled sweeps, which are cheap, and a few iterations of Newton's method; repeated for problems that remain."""
    if warm:
        newton(rows, best, budget, 0, 1)
    for sweeps, first, last in _QUICKLY:
        is_open = best.open(budget)
        if not len(is_open):
            return
        selected, progress = rows[is_open], best[is_open]
        sweep_repeatedly(selected, progress, budget, sweeps)
        newton(selected, progress, budget, first, last)
        best.replace_problems(is_open, progress)


def _from_sweeps(rows: Rows, best: Best, budget: Budget) -> None:
    progress = Best.of(rows, np.zeros_like(best.impulse), best.count)
    sweep_repeatedly(rows, progress, budget, _SWEEPS)
    newton(rows, progress, budget, 0, WARM)
    best.replace_problems(np.arange(len(best.error)), progress)


def _from_admm(rows: Rows, best: Best, budget: Budget) -> None:
    progress = Best.of(rows, np.zeros_like(best.impulse), best.count)
    remaining = budget.iterations - int(best.count.min())
    admm(rows, progress, budget, max(_ADMM, int(0.7 * remaining)) if rows.layout.m > _HUGE else _ADMM)
    newton(rows, progress, budget, 0, WARM)
    best.replace_problems(np.arange(len(best.error)), progress)


def _try_restarts(rows: Rows, best: Best, budget: Budget) -> None:
    newton(rows, best, budget, WARM + 2 if rows.layout.m > _HUGE else _FIRST, len(ATTEMPTS))


def _solve_contradictory(rows: Rows, best: Best, problems: Any, budget: Budget) -> NDArray[np.bool_]:
    """Whether the rows of `problems` are infeasible; stores the least-squares solution of those.

    All rows get a compliance c, so that a solution exists: see `solvers.choice.thorough`. Rows that are met up to
    rounding are not infeasible; they hardly move.
    """
    selected = rows[problems]
    compliant = replace(
        selected,
        G=selected.G + _COMPLIANCE * np.eye(rows.layout.m),
        friction=selected.friction if rows.convex else np.zeros_like(selected.friction),
    )
    progress = Best.of(compliant, np.zeros_like(selected.g), best.count[problems])
    goal = replace(budget, tolerance=max(_ROUGH, budget.tolerance))
    newton(compliant, progress, goal, WARM, _FIRST)
    best.count[problems] = progress.count
    shift = np.where((progress.error <= goal.tolerance)[:, None], _COMPLIANCE * progress.impulse, 0.0)
    contradictory = (np.abs(shift) / selected.limit).max(-1) > _CONTRADICTION
    if contradictory.any():
        indices = np.flatnonzero(contradictory)
        at = problems[indices]
        shifted = replace(selected[indices], g=selected.g[indices] + shift[indices])
        closest = Best.of(shifted, np.zeros_like(shifted.g), best.count[at])
        goal = replace(budget, tolerance=max(4.0 * _ROUGH, budget.tolerance))
        newton(shifted, closest, goal, WARM, _FIRST)
        best.impulse[at], best.error[at], best.count[at] = closest.impulse, closest.error, closest.count
    return contradictory
