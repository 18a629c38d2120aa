"""Restitution that adds no energy: as much of it as there is energy for.

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
"""What the share of restitution stays below the largest one: rows are solved to a tolerance."""

_SOLVES: Final = 3

LOWERED: Final = "Restitution was lowered where it would have added energy"


class Impact(NamedTuple):
    """Rows as contacts strike.

    Attributes:
        inner: aᵀ G b of impulses a and b (m,).
        velocity: (m,) u before.
        strikes: Whether some contact strikes.
        slack: The share of Σ |λ| [m/s] that counts as no energy; None for what rounding makes of it.
    """

    inner: Callable[[Any, Any], Any]
    velocity: Any
    strikes: Any
    slack: Any = None

    @classmethod
    def of(cls, G: Any, velocity: Any, strikes: Any) -> Impact:
        """With G (m, m)."""
        return cls(lambda a, b: np.sum(a * (G @ b)), velocity, strikes)

    def gained(self, impulse: Any) -> Any:
        """The kinetic energy () [J] that impulses (m,) add."""
        return np.sum(impulse * self.velocity) + 0.5 * self.inner(impulse, impulse)

    def adds_energy(self, impulse: Any, most: Any) -> Any:
        """Whether impulses (m,) add more than this, and more than rounding may."""
        if self.slack is None:
            slack = _ROUNDING * np.sum(np.abs(impulse * self.velocity))
        else:
            slack = self.slack * np.sum(np.abs(impulse))
        return self.strikes & (self.gained(impulse) > most + slack)

    def largest_share(self, impulse: Any, plastic: Any) -> Any:
        """s () at which impulses between plastic ones (m,) and others (m,) add no energy, a margin below it."""
        y, first = impulse - plastic, self.gained(plastic)
        slope, curve = np.sum(y * self.velocity) + self.inner(y, plastic), 0.5 * self.inner(y, y)
        room = np.maximum(0.0, -first)
        share = (np.sqrt(slope * slope + 4.0 * curve * room) - slope) / np.where(curve > 0.0, 2.0 * curve, 1.0)
        return (1.0 - _MARGIN) * np.clip(share, 0.0, 1.0)


def solve_without_gain(
    solve: Callable[[Any], tuple[Any, ...]], impact: Impact, full: Any, plastic: Any, residual: Any = None
) -> tuple[tuple[Any, ...], Any]:
    """Rows solved with as much restitution as adds no energy, and its share (), 1 where all of it is there.

    `solve` takes b (m,) and returns impulses (m,), residual, iterations and status; `full` and `plastic` (m,) are b
    with and without restitution; `residual` is one of zeros, (m,) by default. Where plastic impulses add energy, since
    springs do, no more than theirs is allowed. Iterations are those of all solves.
    """

    def play(carry: Any) -> Any:
        last, _, first, soft, stage, _ = carry
        asked = np.where(stage == 2.0, impact.largest_share(first, soft[0]), np.where(stage == 1.0, 0.0, 1.0))
        impulse, left, count, status = solve(plastic + asked * (full - plastic))
        found = (impulse, left, last[2] + count, status)
        most = np.where(stage == 2.0, np.maximum(impact.gained(soft[0]), 0.0), 0.0)
        gains = impact.adds_energy(impulse, most)
        undo = (stage == 2.0) & gains
        solution = tuple(np.where(undo, old, new) for old, new in zip(soft, found, strict=True))
        solution = (*solution[:2], found[2], solution[3])
        soft = tuple(np.where(stage == 1.0, new, old) for old, new in zip(soft, found, strict=True))
        first = np.where(stage == 0.0, impulse, first)
        more = np.where(stage == 0.0, gains, stage == 1.0)
        return solution, np.where(undo, 0.0, asked), first, soft, stage + 1.0, more

    nothing, zero = np.zeros(len(full)), np.array(0.0)
    empty = (nothing, nothing if residual is None else residual, zero, zero)
    start = (empty, np.array(1.0), nothing, empty, zero, np.array(True))
    last = while_loop(lambda carry: carry[5], play, start, _SOLVES)
    return last[0], last[1]


def lowered_restitution(limited: Any) -> str:
    """A sentence, after a space, if restitution was lowered in some states; nothing if it was not."""
    states = numpy.asarray(limited)
    if not states.any():
        return ""
    return f" {LOWERED}{f', in {states.sum()} of {states.size} states' if states.ndim else ''}."
