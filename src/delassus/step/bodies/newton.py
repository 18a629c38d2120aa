"""Newton's method for the contact problem of many bodies, for states that the sweeps do not solve.

Sweeps propagate impulses from contact to contact. In a stack whose masses increase upwards by a factor of a thousand,
it takes them thousands of sweeps until the lightest box at the bottom carries the load. Newton's method solves for all
contacts at once. With the map of Alart and Curnier and its derivatives (`articulated.contact_steps`), an iteration is

    dλ = B⁻¹ y - C J dv,    (M + Σ Jᵀ C J) dv = Jᵀ B⁻¹ y

The second equation, with six unknowns per body, is solved by matrix-free conjugate gradients: a product is one pass
over the contacts, and the blocks (6, 6) of the bodies are the preconditioner. For sliding contacts, only the symmetric
part of C is used, without the dependence of friction on the normal impulse; the omitted part is applied to the
impulses. At most 6 n products are needed for n bodies, up to rounding.

The merit function Σ R y² determines the step length, and the proximal ε grows when steps are short, as in
`articulated.newton`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import UNBOUNDED, scan_first, while_loop
from delassus.compiler.tracing.flow.control import map as map_items
from delassus.linalg.lu import solve_without_pivots
from delassus.step.articulated.contact_steps import contact_step, project
from delassus.step.articulated.line_search import SHORTEST, SMALL, Proximal, adapt_growth, is_decrease
from delassus.step.bodies.motion import Masses, numbers_to
from delassus.step.bodies.rows import ContactRows, RowGroup, SweepRows, push, read, residual_of
from delassus.step.bodies.solve import solve_bodies
from delassus.step.stages.solve import WANTED, Solved
from delassus.step.stages.types import SolverLimits

NEWTON: Final = "newton"
"""Name of the method."""

_WORSE: Final = 1e3
"""Largest growth of the merit function in a full step after short ones."""

_PROXIMAL: Final = Proximal(share=1e-3, largest=0.1, smallest=3e-6)
"""With a smaller ε, conjugate gradients do not converge for redundant contacts of heavy bodies on light ones."""

_PATIENCE: Final = 2.5
"""Number of consecutive short steps after which a full step is taken."""

_ITERATIONS: Final = 40.0
"""Maximum number of iterations."""

_EXACT: Final = 1e-9
"""Relative residual to which the linear system is solved."""

_PRODUCTS: Final = 4.0
"""Largest number of products of the linear system per unknown."""


class _Point(NamedTuple):
    """Impulses (slots, 3), the resulting velocities (bodies + 1, 6), the merit, and the largest error [m/s]."""

    impulse: Any
    velocity: Any
    merit: Any
    error: Any


class _Iterate(NamedTuple):
    """The iterate, the growth of ε, the number of consecutive short steps, and the number of iterations."""

    at: _Point
    growth: Any
    short: Any
    count: Any


class _Trial(NamedTuple):
    """The step length, the point that it leads to, and whether the merit decreased enough."""

    share: Any
    at: _Point
    good: Any


class _Linear(NamedTuple):
    """Conjugate gradients: dv, residual r and direction p, each (bodies + 1, 6), r · z, and the number of products."""

    dv: Any
    r: Any
    p: Any
    square: Any
    count: Any


def solve_by_newton(
    masses: Masses,
    groups: Sequence[RowGroup],
    velocity: Any,
    start: Any,
    scale: Any,
    limits: SolverLimits,
) -> tuple[Solved, Any]:
    """Solve the contact problem of free bodies, in states that `solve.solve_bodies` does not solve.

    `masses` are those of the bodies; other arguments are those of `solve_bodies`.
    """
    tolerance, begun = limits.tolerance * scale, (velocity, start)
    ((count, contacts, _),), (start,) = groups, start

    def evaluate(impulse: Any, velocity: Any) -> _Point:
        def visit(carry: Any, item: SweepRows) -> tuple[Any, None]:
            merit, error, k = carry
            _, y, R = _residual(item, np.take(impulse, k, axis=0), velocity)
            own = np.where(k < count, 1.0, 0.0) * y
            return (merit + R * (own @ own), np.maximum(error, R * np.max(np.abs(own))), k + 1.0), None

        zero = np.array(0.0)
        (merit, error, _), _ = scan_first(count, visit, (zero, zero, zero), contacts)
        return _Point(impulse, velocity, merit, error)

    def step(last: _Iterate) -> _Iterate:
        epsilon = _epsilon(count, contacts, last)
        change, motion = _direction(count, contacts, masses, last.at, epsilon)
        whole = last.short > _PATIENCE

        def shorten(trial: _Trial) -> _Trial:
            share = 0.5 * trial.share

            def moved(k: Any, item: Any) -> tuple[Any, Any]:
                return k + 1.0, np.take(last.at.impulse, k, axis=0) + share * item

            _, impulse = scan_first(count, moved, np.array(0.0), change)
            at = evaluate(impulse, last.at.velocity + share * motion)
            falls, bounded = is_decrease(at.merit, share, last.at.merit), at.merit <= _WORSE * last.at.merit
            return _Trial(share, at, falls | (whole & bounded))

        first = _Trial(np.array(2.0), last.at, np.array(False))
        trial = while_loop(lambda trial: ~trial.good & (trial.share > SHORTEST), shorten, first, UNBOUNDED)
        keep = trial.good | (trial.at.merit < last.at.merit)
        at = _Point(*(np.where(keep, new, old) for new, old in zip(trial.at, last.at, strict=True)))
        return _Iterate(at, *adapt_growth(last.growth, last.short, trial.share), last.count + 1.0)

    def is_open(current: _Iterate) -> Any:
        wanted = np.take(np.array(WANTED), np.minimum(current.count, float(len(WANTED) - 1)))
        return (current.at.error > np.minimum(wanted, 1.0) * tolerance) & (
            current.count < np.minimum(limits.iterations, _ITERATIONS)
        )

    begin = _Iterate(evaluate(start, velocity), np.array(1.0), np.array(0.0), np.array(0.0))
    last = while_loop(is_open, step, begin, UNBOUNDED)
    impulse, velocity = last.at.impulse, last.at.velocity
    error = residual_of(count, contacts, impulse, velocity)
    solved = Solved((impulse,), error, last.count, error <= WANTED[-1] * tolerance)
    fails = ~(solved.done & np.isfinite(np.sum(velocity)))
    return cond(fails, lambda: solve_bodies(groups, *begun, scale, limits), (solved, velocity))


def _residual(item: SweepRows, impulse: Any, velocity: Any) -> tuple[Any, Any, Any]:
    """z and y (3,) of a contact, and its R [1/kg]."""
    row, bias, friction = item
    R = np.maximum(row.tangent_response, 1.0 / row.normal_step)
    z = impulse - (read(row, velocity) + bias) / R
    return z, project(z, np.stack([R, R, R]), friction) - impulse, R


def _epsilon(count: Any, contacts: SweepRows, last: _Iterate) -> Any:
    def visit(carry: Any, item: SweepRows) -> tuple[Any, None]:
        size, k = carry
        own, R = np.take(last.at.impulse, k, axis=0), 1.0 / item.rows.normal_step
        return (size + np.where(k < count, R, 0.0) * (own @ own), k + 1.0), None

    (size, _), _ = scan_first(count, visit, (np.array(SMALL), np.array(0.0)), contacts)
    return _PROXIMAL.epsilon(last.growth, last.at.merit, size)


def _jacobians(row: ContactRows) -> tuple[Any, Any]:
    """The Jacobians (3, 6) of both bodies of a contact; row velocities are their difference."""
    return tuple(
        np.concatenate([row.axes.T, np.stack([np.cross(arm, row.axes[:, j]) for j in range(3)])], 1)
        for arm in (row.arm1, row.arm2)
    )


def _direction(count: Any, contacts: SweepRows, masses: Masses, at: _Point, epsilon: Any) -> tuple[Any, Any]:
    """The direction dλ (slots, 3) of an iteration, and the resulting dv (bodies + 1, 6)."""
    bodies = len(masses.mass)
    still = np.zeros((bodies, 6))

    def linearized(carry: Any, item: SweepRows) -> tuple[Any, Any]:
        force, blocks, k = carry
        row = item.rows
        active = np.where(k < count, 1.0, 0.0)
        z, y, R = _residual(item, np.take(at.impulse, k, axis=0), at.velocity)
        alone, C = contact_step(z, y, np.stack([R, R, R]), item.friction, epsilon)
        alone, C = active * alone, active * C
        symmetric = np.array(C)
        symmetric[:2, 2] = 0.0
        for body, J, sign in zip((row.first, row.second), _jacobians(row), (1.0, -1.0), strict=True):
            force = np.add_at(force, body, sign * (J.T @ alone))
            blocks = np.add_at(blocks, body, (J.T @ symmetric @ J).reshape(-1))
        return (force, blocks, k + 1.0), (alone, C)

    carry = (still, np.zeros((bodies, 36)), np.array(0.0))
    (force, blocks, _), (alone, slopes) = scan_first(count, linearized, carry, contacts)

    def inverted(k: Any) -> Any:
        mass, inertia = np.take(masses.mass, k), np.take(masses.inertia, k, axis=0)
        block = np.array(np.take(blocks, k, axis=0).reshape(6, 6))
        block[:3, :3] = block[:3, :3] + mass * np.eye(3)
        block[3:, 3:] = block[3:, 3:] + inertia
        return np.where(k < float(bodies) - 1.0, solve_without_pivots(block, np.eye(6)), 0.0)

    numbers = numbers_to(bodies)
    inverses = map_items(inverted, numbers)

    def product(v: Any) -> Any:
        """(M + Jᵀ C J) v with the symmetric part of C."""

        def visit(carry: Any, item: SweepRows) -> tuple[Any, None]:
            force, k = carry
            row, own = item.rows, np.where(k < count, 1.0, 0.0) * np.take(slopes, k, axis=0)
            u = read(row, v)
            f = np.concatenate([own[:2, :2] @ u[:2], np.stack([own[2, 2] * u[2]])])
            push, arms = row.axes @ f, (row.arm1, row.arm2)
            one, two = (np.concatenate([push, np.cross(arm, push)]) for arm in arms)
            return (np.add_at(np.add_at(force, row.first, one), row.second, -two), k + 1.0), None

        def inertial(k: Any) -> Any:
            own = np.take(v, k, axis=0)
            return np.concatenate([np.take(masses.mass, k) * own[:3], np.take(masses.inertia, k, axis=0) @ own[3:]])

        carry = (map_items(inertial, numbers), np.array(0.0))
        (force, _), _ = scan_first(count, visit, carry, contacts)
        return map_items(lambda k: np.where(k < float(bodies) - 1.0, np.take(force, k, axis=0), 0.0), numbers)

    def precondition(r: Any) -> Any:
        return map_items(lambda k: np.take(inverses, k, axis=0) @ np.take(r, k, axis=0), numbers)

    r = map_items(lambda k: np.where(k < float(bodies) - 1.0, np.take(force, k, axis=0), 0.0), numbers)
    p = precondition(r)
    square = np.sum(r * p)
    enough, most = _EXACT * _EXACT * square, _PRODUCTS * 6.0 * float(bodies)

    def iterate(current: _Linear) -> _Linear:
        Ap = product(current.p)
        curvature = np.sum(current.p * Ap)
        length = current.square / np.where(curvature > 0.0, curvature, 1.0)
        dv, r = current.dv + length * current.p, current.r - length * Ap
        z = precondition(r)
        square = np.sum(r * z)
        p = z + square / np.where(current.square > 0.0, current.square, 1.0) * current.p
        return _Linear(dv, r, p, square, current.count + 1.0)

    first = _Linear(still, r, p, square, np.array(0.0))
    dv = while_loop(lambda current: (current.square > enough) & (current.count < most), iterate, first, UNBOUNDED).dv
    dv = np.where(np.isfinite(np.sum(dv)), dv, 0.0)

    def changed(carry: Any, item: SweepRows) -> tuple[Any, Any]:
        motion, k = carry
        own = np.take(alone, k, axis=0) - np.take(slopes, k, axis=0) @ read(item.rows, dv)
        own = np.where(k < count, 1.0, 0.0) * own
        return (push(item.rows, motion, own), k + 1.0), own

    (motion, _), change = scan_first(count, changed, (still, np.array(0.0)), contacts)
    return change, motion
