"""Gauss–Seidel sweeps for the contact problem of many bodies and robots, accelerated by conjugate directions.

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

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import UNBOUNDED, scan_first, while_loop
from delassus.step.bodies.rows import RowGroup, SweepRows, combine, push, read, residual_of
from delassus.step.stages.solve import ITERATIONS, WANTED, Solved
from delassus.step.stages.types import SolverLimits

_WANTED: Final = 3.0
"""Velocity change of a sweep that ends the iteration, as a fraction of the tolerance; residuals are then smaller."""


_TURNS: Final = (150.0, 250.0)
"""Number of sweeps with directions, and of damped sweeps between them, whose step length is `_DAMPED`."""

_DAMPED: Final = 0.5


class _Iterate(NamedTuple):
    """Impulses (slots, k) of each group and velocities, the directions p (slots, k) and their velocities, |∇|², the
    largest change of a velocity, sweeps."""

    impulse: Any
    velocity: Any
    direction: Any
    carried: Any
    square: Any
    change: Any
    count: Any


def solve_bodies(
    groups: Sequence[RowGroup], velocity: Any, start: Any, scale: Any, limits: SolverLimits
) -> tuple[Solved, Any]:
    """Impulses that satisfy the laws of contacts and joints, and the velocities with them.

    Args:
        groups: The rows, one group after the other.
        velocity: Velocities with the initial impulses.
        start: Initial impulses (slots, k) of each group.
        scale: Scale of velocities [m/s].
        limits: Termination criteria.
    """
    tolerance, most = limits.tolerance * scale, ITERATIONS * limits.iterations
    zero = np.array(0.0)

    def is_open(current: _Iterate) -> Any:
        return (current.change > _WANTED * tolerance) & (current.count < most)

    def sweep(current: _Iterate) -> _Iterate:
        active = is_open(current)
        damped = current.count - _TURNS[1] * np.floor(current.count / _TURNS[1]) >= _TURNS[0]
        length = np.where(active, np.where(damped, _DAMPED, 1.0), 0.0)
        velocity, square, change, steps = current.velocity, zero, zero, []
        for group, last in zip(groups, current.impulse, strict=True):

            def visit(carry: Any, item: SweepRows, group: RowGroup = group, last: Any = last) -> tuple[Any, Any]:
                velocity, square, change, k = carry
                row, bias, friction = item
                before = np.take(last, k, axis=0)
                after = row.solve_alone(before, read(row, velocity) + bias, friction)
                step = np.where(k < group.count, length, 0.0) * (after - before)
                moved = step / row.steps()
                largest = np.maximum(change, np.max(np.abs(moved)))
                return (push(row, velocity, step), square + step @ moved, largest, k + 1.0), (before + step, step)

            rows = group.items.rows
            carry = (rows.part_of(velocity), square, change, zero)
            (part, square, change, _), both = scan_first(group.count, visit, carry, group.items)
            velocity = rows.with_part(velocity, part)
            steps.append(both)
        ends = (change <= _WANTED * tolerance) | (current.count + 1.0 >= most) | (square >= current.square)
        beta = np.where(ends | damped | ~active, 0.0, square / np.where(current.square > 0.0, current.square, 1.0))
        impulse, direction = [], []
        for group, both, last in zip(groups, steps, current.direction, strict=True):

            def turn(k: Any, item: Any, last: Any = last) -> tuple[Any, Any]:
                impulse, step = item
                p = beta * np.take(last, k, axis=0)
                return k + 1.0, (impulse + p, step + p)

            _, (new, turned) = scan_first(group.count, turn, zero, both)
            impulse.append(new)
            direction.append(turned)
        carried = combine(lambda v, old, p: v - old + beta * p, velocity, current.velocity, current.carried)
        velocity = combine(lambda v, p: v + beta * p, velocity, current.carried)
        square, change = np.where(active, square, current.square), np.where(active, change, current.change)
        done = current.count + np.where(active, 1.0, 0.0)
        return _Iterate(tuple(impulse), velocity, tuple(direction), carried, square, change, done)

    none, still = tuple(np.zeros(x.shape) for x in start), combine(lambda v: np.zeros(v.shape), velocity)
    first = _Iterate(tuple(start), velocity, none, still, zero, np.array(np.inf) + zero, zero)
    last = while_loop(is_open, sweep, first, UNBOUNDED, settles=True)

    error = largest_residual(groups, last.impulse, last.velocity)
    solved = Solved(last.impulse, error, last.count, error <= WANTED[-1] * tolerance)
    return solved, last.velocity


def largest_residual(groups: Sequence[RowGroup], impulse: Any, velocity: Any) -> Any:
    """The largest velocity change () [m/s] of a row or contact of any group solved alone."""
    errors = [residual_of(g.count, g.items, own, velocity) for g, own in zip(groups, impulse, strict=True)]
    return reduce(np.maximum, errors)
