"""Gauss–Seidel sweeps for the contact problem of many bodies, accelerated by conjugate directions.

A sweep of projected Gauss–Seidel solves one contact after the other with the others fixed (`coulomb_move`), on body
velocities, in O(contacts). The number of plain sweeps grows with the square of a pile's height and with its mass ratio.
With the change of a sweep as a gradient, the method of Fletcher and Reeves,

    λ⁺ = sweep(λ),   ∇ = λ - λ⁺,   β = |∇|²/|∇_last|²,   λ ← λ⁺ + β p,   p ← β p - ∇      (p ← -∇, λ ← λ⁺ if β > 1)

converges like conjugate gradients. Norms are in the metric of the contacts' own responses. Coulomb's law is not the
minimum of a function, so the iteration may cycle, as with the few contacts of a body that hits the ground at a corner.
Therefore it alternates with damped sweeps without directions. λ + β p may leave the cones; the next sweep projects it.
The returned residual is that of all contacts at the end.

Reference: M. Silcowitz, S. Niebe, K. Erleben, A nonsmooth nonlinear conjugate gradient method for interactive contact
force problems (2010).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import UNBOUNDED, scan_first, while_loop
from delassus.step.bodies.rows import SweepRows, new_impulse, push, read, residual_of
from delassus.step.stages.solve import ITERATIONS, WANTED, Solved
from delassus.step.stages.types import SolverLimits

_WANTED: Final = 3.0
"""Velocity change of a sweep that ends the iteration, as a fraction of the tolerance; residuals are then smaller."""


_TURNS: Final = (150.0, 250.0)
"""Number of sweeps with directions, and of damped sweeps between them, whose step length is `_DAMPED`."""

_DAMPED: Final = 0.5


class _Iterate(NamedTuple):
    """Impulses (slots, 3) and velocities (bodies + 1, 6), the direction p (slots, 3) and its velocities
    (bodies + 1, 6), |∇|², the largest change of a velocity, sweeps."""

    impulse: Any
    velocity: Any
    direction: Any
    carried: Any
    square: Any
    change: Any
    count: Any


def solve_bodies(
    count: Any, contacts: SweepRows, velocity: Any, start: Any, scale: Any, limits: SolverLimits
) -> tuple[Solved, Any]:
    """Impulses (slots, 3) that satisfy Coulomb's law, and the velocities (bodies + 1, 6) with them.

    Args:
        count: Number of contacts.
        contacts: Their rows.
        velocity: (bodies + 1, 6) with the initial impulses.
        start: (slots, 3) initial impulses.
        scale: Scale of velocities [m/s].
        limits: Termination criteria.
    """
    tolerance, most = limits.tolerance * scale, ITERATIONS * limits.iterations

    def is_open(current: _Iterate) -> Any:
        return (current.change > _WANTED * tolerance) & (current.count < most)

    def sweep(current: _Iterate) -> _Iterate:
        active = is_open(current)
        damped = current.count - _TURNS[1] * np.floor(current.count / _TURNS[1]) >= _TURNS[0]
        length = np.where(active, np.where(damped, _DAMPED, 1.0), 0.0)

        def visit(carry: Any, item: SweepRows) -> tuple[Any, Any]:
            velocity, square, change, k = carry
            row, bias, friction = item
            before = np.take(current.impulse, k, axis=0)
            after = new_impulse(row, before, read(row, velocity) + bias, friction)
            step = np.where(k < count, length, 0.0) * (after - before)
            moved = step / np.stack([row.tangent_step, row.tangent_step, row.normal_step])
            largest = np.maximum(change, np.max(np.abs(moved)))
            return (push(row, velocity, step), square + step @ moved, largest, k + 1.0), (before + step, step)

        zero = np.array(0.0)
        carry = (current.velocity, zero, zero, zero)
        (velocity, square, change, _), steps = scan_first(count, visit, carry, contacts)
        ends = (change <= _WANTED * tolerance) | (current.count + 1.0 >= most) | (square >= current.square)
        beta = np.where(ends | damped | ~active, 0.0, square / np.where(current.square > 0.0, current.square, 1.0))

        def turn(k: Any, item: Any) -> tuple[Any, Any]:
            impulse, step = item
            p = beta * np.take(current.direction, k, axis=0)
            return k + 1.0, (impulse + p, step + p)

        _, (impulse, direction) = scan_first(count, turn, zero, steps)
        carried = velocity - current.velocity + beta * current.carried
        velocity = velocity + beta * current.carried
        square, change = np.where(active, square, current.square), np.where(active, change, current.change)
        done = current.count + np.where(active, 1.0, 0.0)
        return _Iterate(impulse, velocity, direction, carried, square, change, done)

    zero = np.array(0.0)
    none, still = np.zeros(start.shape), np.zeros(velocity.shape)
    first = _Iterate(start, velocity, none, still, zero, np.array(np.inf) + zero, zero)
    last = while_loop(is_open, sweep, first, UNBOUNDED, settles=True)

    error = residual_of(count, contacts, last.impulse, last.velocity)
    solved = Solved(last.impulse, error, last.count, error <= WANTED[-1] * tolerance)
    return solved, last.velocity
