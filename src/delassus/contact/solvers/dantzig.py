"""Dantzig's principal pivoting for impulses with bounds: frictionless contacts, joint limits, joint friction.

The method drives one row with a velocity of the wrong sign at a time: its impulse grows, and the impulses of the rows
at rest follow so that they stay at rest, until the driven row comes to rest or meets a bound. If another row comes to
rest or meets a bound first, it changes sets. Rows that satisfy their conditions continue to, so the method terminates.
For a symmetric positive semidefinite G, each change is one diagonal pivot, whatever the rank. If nothing stops the
driven row, the rows are infeasible.

Each pivot costs 2 m² multiplications; m to 2 m of them are typical. Solutions are exact to rounding.

References: R.W. Cottle, G.B. Dantzig (1968); D. Baraff, Fast contact force computation (1994).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import while_loop
from delassus.contact.solvers.lemke import select_row
from delassus.contact.solvers.progress import FOREVER
from delassus.linalg.filtered_system import regularization

_NEVER: Final = 1e100
"""Steps and bounds beyond this count as infinite."""


class DantzigSolution(NamedTuple):
    """Impulses (m,), the number of pivots, and whether the rows are infeasible."""

    impulse: Any
    pivots: Any
    contradictory: Any


class _Drive(NamedTuple):
    """State of the iteration.

    Attributes:
        impulse: (m,).
        still: (m,) 1 for rows at rest, else 0.
        T: (m, m) see `pivot`.
        row: Index of the driven row, -1 for none.
        over, never: 1 if all velocities have the right sign, or if the rows are infeasible.
        pivots: Number of pivots so far.
    """

    impulse: Any
    still: Any
    T: Any
    row: Any
    over: Any
    never: Any
    pivots: Any


def dantzig(G: Any, g: Any, lower: Any, upper: Any, slack: Any, most: Any) -> DantzigSolution:
    """Impulses (m,) in a box, complementary to σ = G λ + g.

    Args:
        G: (m, m) with a diagonal of about one.
        g: (m,) velocities.
        lower: (m,) bounds; values beyond 1e100 are infinite.
        upper: (m,) bounds, likewise.
        slack: (m,) tolerances of velocities of the wrong sign.
        most: Maximum number of pivots.
    """
    m = len(g)
    below, above = lower > -_NEVER, upper < _NEVER
    start = np.where(below, lower, np.where(above, upper, 0.0))
    nobody, indices = np.array(-1.0), numpy.arange(m, dtype=float)

    def wrong(impulse: Any, velocity: Any, still: Any) -> Any:
        """The velocity of the wrong sign of each row, with rows without bounds first."""
        up = np.where(impulse < upper, -velocity, 0.0)
        down = np.where(impulse > lower, velocity, 0.0)
        violation = np.where(still > 0.5, 0.0, np.maximum(up, down))
        return np.where(violation > slack, violation * np.where(below | above, 1.0, _NEVER), 0.0)

    def step(last: _Drive) -> _Drive:
        impulse, still, T, row = last.impulse, last.still, last.T, last.row
        velocity = G @ impulse + g
        error = wrong(impulse, velocity, still)
        row = np.where(row < 0.0, np.argmax(error) + 0.0, row)
        done = np.max(error) == 0.0
        driven = indices == row
        speed = select_row(driven, velocity)
        direction = np.where(speed < 0.0, 1.0, -1.0)
        # T is symmetric up to signs: responses of impulses at rest, and of velocities
        response = direction * select_row(driven, T)
        moves = np.where(driven, direction, np.where(still > 0.5, -response, 0.0))
        drifts = np.where(still > 0.5, 0.0, response)
        room = np.where(
            moves > regularization(), (upper - impulse) / np.where(moves > regularization(), moves, 1.0), 10.0 * _NEVER
        )
        room = np.where(
            moves < -regularization(), (lower - impulse) / np.where(moves < -regularization(), moves, 1.0), room
        )
        right = (still < 0.5) & (error == 0.0) & (lower < upper)
        stopping = np.where(impulse > lower, drifts > regularization(), drifts < -regularization())
        free_run = np.where(stopping, np.abs(velocity) / np.where(stopping, np.abs(drifts), 1.0), 10.0 * _NEVER)
        bound_step = np.where(right & ~driven, free_run, 10.0 * _NEVER)
        stopping_step = np.where(
            driven & (np.abs(drifts) > regularization()),
            np.abs(velocity) / np.maximum(np.abs(drifts), regularization()),
            10.0 * _NEVER,
        )
        times = np.concatenate([room, np.minimum(bound_step, stopping_step)])
        first, length = np.argmin(times) + 0.0, np.min(times)
        never = length > _NEVER
        length = np.where(never, 0.0, np.maximum(length, 0.0))
        hits_bound = first < m
        pivot_row = indices == np.where(hits_bound, first, first - m)
        impulse = impulse + length * moves
        impulse = np.where(pivot_row & hits_bound, np.where(moves > 0.0, upper, lower), impulse)
        # A row at rest that meets a bound becomes free to move; a row that is stopped comes to rest.
        changes = ~never & ~(hits_bound & np.any(pivot_row & driven))
        T = np.where(changes, pivot(T, pivot_row, np.where(hits_bound, -1.0, 1.0)), T)
        still = np.where(pivot_row & changes, np.where(hits_bound, 0.0, 1.0), still)
        row = np.where(np.any(pivot_row & driven), nobody, row)
        impulse, still, T, row = (
            np.where(done, old, new) for old, new in zip(last[:4], (impulse, still, T, row), strict=True)
        )
        flags = np.where(done, 1.0, 0.0), np.where(never & ~done, 1.0, 0.0)
        return _Drive(impulse, still, T, row, *flags, last.pivots + 1.0)

    def goes_on(last: _Drive) -> Any:
        return (last.over + last.never == 0.0) & (last.pivots < most)

    zero = np.array(0.0)
    last: _Drive = while_loop(goes_on, step, _Drive(start, np.zeros(m), 1.0 * G, nobody, zero, zero, zero), FOREVER)
    impulse, still, T = last.impulse, last.still, last.T
    for _ in range(2):  # refines velocities that should be zero
        drift = np.where(still > 0.5, G @ impulse + g, 0.0)
        impulse = impulse + np.where(still > 0.5, T @ drift, 0.0)
    return DantzigSolution(np.minimum(np.maximum(impulse, lower), upper), last.pivots, last.never > 0.5)


def pivot(T: Any, who: Any, direction: Any) -> Any:
    """Update the matrix after one row has changed sets.

    With A the rows at rest and N the others, T_AA = -G_AA⁻¹, T_AN = G_AA⁻¹ G_AN = T_NAᵀ, and
    T_NN = G_NN - G_NA G_AA⁻¹ G_AN.
    """
    row = select_row(who, T)
    pivot = select_row(who, row)
    pivot = np.where(np.abs(pivot) > regularization() * regularization(), pivot, 1.0)
    share = row / pivot
    inner = T - row[:, None] * share[None, :]
    edge = direction * share
    result = np.where(who[:, None], edge[None, :], np.where(who[None, :], edge[:, None], inner))
    return np.where(who[:, None] & who[None, :], -1.0 / pivot, result)
