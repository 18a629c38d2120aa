"""Gauss–Seidel over many contacts; contacts that do not interact are solved at the same time.

Contacts are colored such that no two contacts of a color share a body (their block of G is zero). A sweep is one NumPy
step for each color: about a dozen for a pile of stones of any size, but one for each contact if all of them act on one
robot. m² multiplications a sweep.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delassus.contact.cones.kinds import Free
from delassus.contact.cones.layout import Layout
from delassus.contact.large.bisection import contact_impulse
from delassus.contact.large.compiled import SIZES, sweep_compiled
from delassus.contact.large.progress import Best, Budget
from delassus.contact.large.rows import Array, Group, Indices, Rows, groups_of
from delassus.contact.solvers.bisection import FALL, LEAST_RELAXATION, refuse_bisection
from delassus.contact.solvers.registry import register_solver
from delassus.contact.systems.protocol import BATCH, SWEEP, Update
from delassus.contact.systems.sweep import contact_update

_UNCOUPLED: Final = 1e-13
"""Blocks of G below this, relative to a contact's own response, are rounding errors and count as zero."""


class Step(NamedTuple):
    """Rows that are solved at the same time.

    `contacts` and `rows` are those of a group; for rows before the contacts they are None and (n,). `columns` (B, rows,
    m) are their columns of G, and `own` the diagonal blocks (B, n, k, k) or the diagonal (B, n).
    """

    contacts: Indices | None
    rows: Indices
    columns: Array
    own: Array


def plan_sweep(rows: Rows) -> list[Step]:
    """The steps of a sweep, in the order of the rows as far as the coloring permits."""
    layout, G = rows.layout, rows.G
    starts = [*range(layout.scalars), *(at.start for at in layout.blocks)]
    coupled = np.abs(G).max(0) > _UNCOUPLED
    coupled = np.logical_or.reduceat(np.logical_or.reduceat(coupled, starts, 0), starts, 1)
    colors = color_greedily(coupled)
    steps = []
    for color in range(int(colors.max()) + 1):
        scalars = np.flatnonzero(colors[: layout.scalars] == color)
        if len(scalars):
            diagonal = G[:, scalars, scalars]
            steps.append(
                Step(None, scalars, np.ascontiguousarray(G[:, scalars]), np.where(diagonal > 0.0, diagonal, 1.0))
            )
        for group in groups_of(layout):
            members = np.flatnonzero(colors[layout.scalars + group.contacts] == color)
            if len(members):
                steps.append(_contact_step(G, Group(group.contacts[members], group.rows[members])))
    return steps


def _contact_step(G: Array, group: Group) -> Step:
    at = group.rows
    return Step(group.contacts, at, np.ascontiguousarray(G[:, at.ravel()]), G[:, at[:, :, None], at[:, None, :]])


def color_greedily(coupled: NDArray[np.bool_]) -> Indices:
    """The smallest color (n,) of each unit that no earlier coupled unit has; `coupled` is (n, n) and symmetric."""
    colors = np.full(len(coupled), -1)
    for k, row in enumerate(coupled):
        neighbor_colors = np.zeros(len(coupled) + 1, bool)
        neighbor_colors[colors[:k][row[:k]]] = True
        colors[k] = int(np.argmin(neighbor_colors))
    return colors


def sweep(rows: Rows, steps: list[Step], impulse: Array, velocity: Array, rule: Update, relaxation: Any = 1.0) -> None:
    """Change impulses and velocities (B, m) in place by one sweep."""
    lower, upper = _bounds(rows)
    for contacts, at, columns, block in steps:
        old = impulse[:, at]
        if contacts is None:
            new = np.clip(old - relaxation * velocity[:, at] / block, lower[:, at], upper[:, at])
        else:
            new = rule(block, old, velocity[:, at], rows.friction[:, contacts], relaxation)
        impulse[:, at] = new
        change = (new - old).reshape(len(new), 1, -1)
        velocity += (change @ columns)[:, 0]


def _bounds(rows: Rows) -> tuple[Array, Array]:
    """Bounds (B, scalars) of the rows before the contacts, infinite where there are none."""
    layout, count = rows.layout, len(rows.g)
    lower, upper = np.zeros((count, layout.scalars)), np.full((count, layout.scalars), np.inf)
    lower[:, : len(layout.rows(Free))] = -np.inf
    intervals = slice(layout.scalars - layout.intervals, layout.scalars)
    lower[:, intervals], upper[:, intervals] = rows.lower, rows.upper
    return lower, upper


def is_compiled(layout: Layout) -> bool:
    """Whether a compiled sweep exists: only for problems of contacts with three rows each."""
    return not layout.scalars and not layout.torsional and layout.contacts <= max(SIZES)


def sweep_repeatedly(rows: Rows, best: Best, budget: Budget, sweeps: int) -> None:
    """Run a number of sweeps on all open problems; the error is computed once, at the end."""
    live = best.open(budget)
    if not len(live):
        return
    sweeps = min(sweeps, int(np.min(budget.iterations - best.count[live])))
    active = rows[live]
    impulse = best.impulse[live].copy()
    velocity = active.velocity(impulse)
    if is_compiled(rows.layout):
        impulse, velocity = sweep_compiled(active.G, velocity, impulse, active.friction, sweeps, rows.convex)
    else:
        steps = plan_sweep(active)
        for _ in range(sweeps):
            sweep(active, steps, impulse, velocity, contact_update(rows.convex))
    best.count[live] += sweeps
    # Sweeps find modes of contacts even where the error increases: Newton's method starts from the last iterate.
    best.impulse[live], best.error[live] = impulse, active.error(impulse, velocity)


@register_solver("pgs", needs={BATCH, SWEEP}, traced=False)
@register_solver("sequential_impulses", needs={BATCH, SWEEP}, traced=False)
def gauss_seidel(rows: Rows, best: Best, budget: Budget) -> None:
    """Sweep until the problems are solved."""
    _sweep_relaxed(rows, best, budget, contact_update(rows.convex))


@register_solver("bisection", needs={BATCH, SWEEP}, traced=False)
def bisection(rows: Rows, best: Best, budget: Budget) -> None:
    """Sweeps in which each contact is solved exactly, with decreasing relaxation."""
    refuse_bisection(rows)
    _sweep_relaxed(rows, best, budget, contact_impulse, LEAST_RELAXATION)


def _sweep_relaxed(rows: Rows, best: Best, budget: Budget, rule: Update, least: float = 1.0) -> None:
    """Sweep with a relaxation that decreases from one to `least`."""
    live = best.open(budget)
    active, impulse = rows[live], best.impulse[live].copy()
    steps, relaxation = plan_sweep(active) if len(live) else [], 1.0
    velocity = active.velocity(impulse)
    while len(live):
        sweep(active, steps, impulse, velocity, rule, relaxation)
        relaxation = least + FALL * (relaxation - least)
        best.count[live] += 1
        best.keep(live, impulse, active.error(impulse, velocity))
        going = best.is_open(budget, live)
        if not going.all():
            live, impulse, velocity, active = (
                live[going],
                impulse[going],
                velocity[going],
                active[np.flatnonzero(going)],
            )
            steps = [Step(c, at, columns[going], block[going]) for c, at, columns, block in steps]
