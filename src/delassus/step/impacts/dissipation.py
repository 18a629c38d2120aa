"""Restitution that adds no energy: reduces the coefficient until the energy does not grow.

Newton's law prescribes the separation speed, independently of friction. Together with friction it may add energy (T.
Kane, D. Levinson, 1985). The impulses λ₀ of the plastic impact never add energy, and λ₀ + s (λ - λ₀) lies in the
friction cones for 0 ≤ s ≤ 1, since cones are convex. The kinetic energy is

    T(s) = T(0) + s yᵀ u₀ + s² ½ yᵀ G y,      y = λ - λ₀,  u₀ = u + G λ₀,

where u are the row velocities before the impact. s is the largest fraction for which the energy does not grow. While no
contact changes between sticking and sliding, λ₀ + s y are the impulses for the fraction s of the rebound velocity.
Therefore the rows are solved a third time, with this fraction. If contacts do change, and these impulses still add
energy, the impact is plastic. Impulses, residual and status always belong to the fraction that is returned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import while_loop

_ROUNDING: Final = 1e-13

_MARGIN: Final = 1e-6
"""Margin below the largest fraction of restitution, since rows are solved to a tolerance."""

_SOLVES: Final = 3

LOWERED: Final = "Restitution was lowered where it would have added energy"


Response = Callable[[Any], Any]
"""G λ (m,) of impulses (m,)."""


def energy_gain(respond: Response, u: Any, impulse: Any) -> Any:
    """The kinetic energy () [J] that impulses (m,) add to rows with velocities u (m,)."""
    return np.sum(impulse * (u + 0.5 * respond(impulse)))


class _Attempt(NamedTuple):
    """The iterate of `solve_without_gain`.

    Attributes:
        solution: The accepted solution.
        fraction: () its fraction of restitution.
        full_impulse: (m,) impulses with full restitution.
        plastic: The plastic solution.
        count: () the number of solved problems.
        active: () whether another problem must be solved.
    """

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
    """The solution with the largest fraction () of restitution that adds no energy, and this fraction; 1 is full
    restitution.

    Args:
        solve: A function of b (m,) and initial impulses (m,); returns a named tuple whose first field are impulses.
        respond: G λ.
        u: (m,) row velocities before the impact.
        impact: () whether there is an impact.
        full: (m,) b with restitution.
        plastic: (m,) b without restitution. If springs make plastic impulses add energy, this gain is allowed.
        empty: An initial solution, with the shapes of a solution.
        velocity_error: [m/s] tolerance of the velocities; impulses times this error do not count as a gain of energy.
    """

    def attempt(iterate: _Attempt) -> _Attempt:
        first, second, third = (iterate.count == float(k) for k in range(3))
        fraction = np.where(
            third, _largest_fraction(respond, u, iterate.full_impulse, iterate.plastic[0]), np.where(second, 0.0, 1.0)
        )
        new = solve(plastic + fraction * (full - plastic), iterate.solution[0])
        impulse = new[0]
        allowed = np.where(third, np.maximum(energy_gain(respond, u, iterate.plastic[0]), 0.0), 0.0)
        noise = _ROUNDING * np.sum(np.abs(impulse * u)) + velocity_error * np.sum(np.abs(impulse))
        gains = impact & (energy_gain(respond, u, impulse) > allowed + noise)
        undo = third & gains
        return _Attempt(
            _select(undo, iterate.plastic, new),
            np.where(undo, 0.0, fraction),
            np.where(first, impulse, iterate.full_impulse),
            _select(second, new, iterate.plastic),
            iterate.count + 1.0,
            np.where(first, gains, second),
        )

    start = _Attempt(empty, np.array(1.0), empty[0], empty, np.array(0.0), np.array(True))
    result = while_loop(lambda iterate: iterate.active, attempt, start, _SOLVES)
    return result.solution, result.fraction


def _select(condition: Any, one: Any, other: Any) -> Any:
    """The solution `one` where the condition holds, else `other`."""
    return type(one)(*(np.where(condition, x, y) for x, y in zip(one, other, strict=True)))


def _largest_fraction(respond: Response, u: Any, impulse: Any, plastic: Any) -> Any:
    """The largest s () for which λ₀ + s (λ - λ₀) adds no energy, minus a margin; λ are impulses, λ₀ plastic ones."""
    y, plastic_gain = impulse - plastic, energy_gain(respond, u, plastic)
    slope, curve = np.sum(y * (u + respond(plastic))), 0.5 * np.sum(y * respond(y))
    dissipated = np.maximum(0.0, -plastic_gain)
    fraction = (np.sqrt(slope * slope + 4.0 * curve * dissipated) - slope) / np.where(curve > 0.0, 2.0 * curve, 1.0)
    return (1.0 - _MARGIN) * np.clip(fraction, 0.0, 1.0)


def describe_energy_limit(limited: Any) -> str:
    """A sentence, after a space, if restitution was reduced in some states; else an empty string."""
    states = numpy.asarray(limited)
    if not states.any():
        return ""
    return f" {LOWERED}{f', in {states.sum()} of {states.size} states' if states.ndim else ''}."
