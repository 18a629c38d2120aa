"""The contact problem of many bodies, by sweeps over their contacts that conjugate directions accelerate.

A sweep of projected Gauss–Seidel solves one contact after the other as if all others stood still (`coulomb_move`), on
the velocities of the bodies, in O(contacts). Sweeps alone converge like Gauss–Seidel, in a number of them that grows
with the square of a pile's height and with the ratio of its masses. With the change of a sweep as a gradient, as in
Fletcher's and Reeves' method,

    λ⁺ = sweep(λ),   ∇ = λ - λ⁺,   β = |∇|²/|∇_last|²,   λ ← λ⁺ + β p,   p ← β p - ∇      (p ← -∇, λ ← λ⁺ if β > 1)

it converges like conjugate gradients. Lengths are those of the metric of the contacts' own responses. λ + β p may leave
the cones, and the next sweep brings it back. The residual that is told is that of all contacts at the end.

Reference: M. Silcowitz, S. Niebe, K. Erleben, A nonsmooth nonlinear conjugate gradient method for interactive contact
force problems (2010).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import UNBOUNDED, scan, while_loop
from delassus.compiler.tracing.flow.control import map as map_items
from delassus.contact.systems.sweep import ContactSteps, coulomb_move
from delassus.step.bodies.rows import ContactRows, push, read
from delassus.step.stages.solve import ITERATIONS, WANTED, Solved
from delassus.step.stages.types import SolverLimits

_WANTED: Final = 0.3
"""The share of the tolerance below which the change of a sweep ends it."""


class _Iterate(NamedTuple):
    """Impulses (slots, 3) and velocities (bodies + 1, 6), the direction p (slots, 3) and its velocities (bodies + 1, 6),
    |∇|², the largest change of a velocity, sweeps."""

    impulse: Any
    velocity: Any
    direction: Any
    carried: Any
    square: Any
    change: Any
    count: Any


def new_impulse(row: ContactRows, impulse: Any, u: Any, friction: Any) -> Any:
    """The impulse (3,) of one contact with the velocity u (3,) that solves it alone."""
    G = np.zeros((3, 3))
    G[:2, 2] = row.across
    return coulomb_move(G, ContactSteps(row.normal_step, row.tangent_step), impulse, u, friction)


def solve_bodies(
    rows: ContactRows, bias: Any, friction: Any, velocity: Any, start: Any, scale: Any, limits: SolverLimits
) -> tuple[Solved, Any]:
    """Impulses (slots, 3) that obey Coulomb's law, and the velocities (bodies + 1, 6) with them.

    Args:
        rows: The contacts.
        bias: (slots, 3) added to their velocities: contacts must not be closed by less than zero.
        friction: (slots,).
        velocity: (bodies + 1, 6) with the impulses to start from.
        start: (slots, 3) these.
        scale: Of velocities [m/s].
        limits: When it ends.
    """
    tolerance, most = limits.tolerance * scale, ITERATIONS * limits.iterations

    def visit(carry: Any, item: Any) -> tuple[Any, Any]:
        velocity, square, change = carry
        row, bias, friction, before = item
        after = new_impulse(row, before, read(row, velocity) + bias, friction)
        step = after - before
        moved = step / np.stack([row.tangent_step, row.tangent_step, row.normal_step])
        carry = push(row, velocity, step), square + step @ moved, np.maximum(change, np.max(np.abs(moved)))
        return carry, after

    def sweep(now: _Iterate) -> _Iterate:
        carry = (now.velocity, np.array(0.0), np.array(0.0))
        (velocity, square, change), impulse = scan(visit, carry, (rows, bias, friction, now.impulse))
        ends = (change <= _WANTED * tolerance) | (now.count + 1.0 >= most) | (square >= now.square)
        beta = np.where(ends, 0.0, square / np.where(now.square > 0.0, now.square, 1.0))

        def ahead(new: Any, old: Any, p: Any) -> tuple[Any, Any]:
            return new + beta * p, new - old + beta * p

        impulse, direction = map_items(ahead, impulse, now.impulse, now.direction)
        velocity, carried = map_items(ahead, velocity, now.velocity, now.carried)
        return _Iterate(impulse, velocity, direction, carried, square, change, now.count + 1.0)

    def is_open(now: _Iterate) -> Any:
        return (now.change > _WANTED * tolerance) & (now.count < most)

    zero = np.array(0.0)
    none, still = map_items(lambda x: 0.0 * x, start), map_items(lambda x: 0.0 * x, velocity)
    first = _Iterate(start, velocity, none, still, zero, np.array(np.inf) + zero, zero)
    last = while_loop(is_open, sweep, first, UNBOUNDED)

    def residual(row: Any, bias: Any, friction: Any, impulse: Any) -> Any:
        row = ContactRows(*row)
        change = new_impulse(row, impulse, read(row, last.velocity) + bias, friction) - impulse
        return np.maximum(np.max(np.abs(change[:2])) / row.tangent_step, np.abs(change[2]) / row.normal_step)

    error = np.max(map_items(residual, tuple(rows), bias, friction, last.impulse))
    solved = Solved(last.impulse, error, last.count, error <= WANTED[-1] * tolerance)
    return solved, last.velocity
