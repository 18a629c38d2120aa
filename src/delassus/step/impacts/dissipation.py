"""Restitution that adds no energy: reduces the coefficient until the energy does not grow.

Newton's law says how fast contacts separate, whatever friction does meanwhile, and with friction the two together may
ask for more energy than there was (T. Kane, D. Levinson, 1985). The impulses λ₀ of the plastic impact never do, and
λ₀ + s (λ - λ₀) lies in the cones of friction for all s from 0 to 1, since cones are convex. Its kinetic energy is

    T(s) = T(0) + s yᵀ u₀ + s² ½ yᵀ G y,      y = λ - λ₀,  u₀ = u + G λ₀,

u the velocities of the rows before: s is the largest at which T(s) is no more than it was. As long as contacts keep
their modes, λ₀ + s y are the impulses of rows that ask for the share s of what restitution asks for. So rows are solved
a third time, with this share. Where modes change and these impulses still add energy, the impact is plastic. Impulses,
residual and status are always those of the rows with the share that is returned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import while_loop

_ROUNDING: Final = 1e-13

_MARGIN: Final = 1e-6
"""Margin below the largest fraction of restitution, because rows are solved to a tolerance only."""

_SOLVES: Final = 3

LOWERED: Final = "Restitution was lowered where it would have added energy"


Response = Callable[[Any], Any]
"""G λ (m,) of impulses (m,)."""


def energy_gain(respond: Response, u: Any, impulse: Any) -> Any:
    """The kinetic energy () [J] that impulses (m,) of rows with velocities u (m,) add."""
    return np.sum(impulse * (u + 0.5 * respond(impulse)))


class _Attempt(NamedTuple):
    """The solution kept and its fraction of restitution; impulses (m,) with all of it, the solution without any; how
    many problems have been solved, and whether another one is to be."""

    solution: Any
    fraction: Any
    full_impulse: Any
    plastic: Any
    count: Any
    active: Any


def solve_without_gain(
    solve: Callable[[Any, Any], Any],
    respond: Response,
    u: Any,
    impact: Any,
    full: Any,
    plastic: Any,
    empty: Any,
    velocity_error: Any = 0.0,
) -> tuple[Any, Any]:
    """The solution with as much restitution as adds no energy, and its fraction (), 1 where all of it is there.

    Args:
        solve: Takes b (m,) and impulses (m,) to start from, and returns a named tuple whose first field are impulses.
        respond: G λ.
        u: (m,) velocities of rows as contacts meet.
        impact: () whether one does.
        full: (m,) b with restitution.
        plastic: (m,) b without it. Where springs make plastic impulses add energy, no more than theirs is allowed.
        empty: A solution to start from, with the shapes of one.
        velocity_error: [m/s] to which velocities are solved: impulses times it count as no gain of energy.
    """

    def attempt(last: _Attempt) -> _Attempt:
        first, second, third = (last.count == float(k) for k in range(3))
        fraction = np.where(
            third, _largest_fraction(respond, u, last.full_impulse, last.plastic[0]), np.where(second, 0.0, 1.0)
        )
        new = solve(plastic + fraction * (full - plastic), last.solution[0])
        impulse = new[0]
        most = np.where(third, np.maximum(energy_gain(respond, u, last.plastic[0]), 0.0), 0.0)
        noise = _ROUNDING * np.sum(np.abs(impulse * u)) + velocity_error * np.sum(np.abs(impulse))
        gains = impact & (energy_gain(respond, u, impulse) > most + noise)
        undo = third & gains
        return _Attempt(
            _select(undo, last.plastic, new),
            np.where(undo, 0.0, fraction),
            np.where(first, impulse, last.full_impulse),
            _select(second, new, last.plastic),
            last.count + 1.0,
            np.where(first, gains, second),
        )

    start = _Attempt(empty, np.array(1.0), empty[0], empty, np.array(0.0), np.array(True))
    last = while_loop(lambda now: now.active, attempt, start, _SOLVES)
    return last.solution, last.fraction


def _select(condition: Any, one: Any, other: Any) -> Any:
    """One of two solutions."""
    return type(one)(*(np.where(condition, x, y) for x, y in zip(one, other, strict=True)))


def _largest_fraction(respond: Response, u: Any, impulse: Any, plastic: Any) -> Any:
    """s () at which impulses between plastic ones (m,) and others (m,) add no energy, a margin below it."""
    y, first = impulse - plastic, energy_gain(respond, u, plastic)
    slope, curve = np.sum(y * (u + respond(plastic))), 0.5 * np.sum(y * respond(y))
    room = np.maximum(0.0, -first)
    fraction = (np.sqrt(slope * slope + 4.0 * curve * room) - slope) / np.where(curve > 0.0, 2.0 * curve, 1.0)
    return (1.0 - _MARGIN) * np.clip(fraction, 0.0, 1.0)


def describe_energy_limit(limited: Any) -> str:
    """A sentence, after a space, if restitution was lowered in some states; nothing if it was not."""
    states = numpy.asarray(limited)
    if not states.any():
        return ""
    return f" {LOWERED}{f', in {states.sum()} of {states.size} states' if states.ndim else ''}."
