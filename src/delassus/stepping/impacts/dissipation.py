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


def gained(G: Any, u: Any, impulse: Any) -> Any:
    """The kinetic energy () [J] that impulses (m,) of rows with velocities u (m,) add."""
    return np.sum(impulse * (u + 0.5 * (G @ impulse)))


class _Play(NamedTuple):
    """The solution so far and its share of restitution, the impulses with all of it, the solution without, how many
    solves were made, and whether there is another one."""

    solution: tuple[Any, ...]
    share: Any
    full: Any
    plastic: tuple[Any, ...]
    stage: Any
    more: Any


def solve_without_gain(
    solve: Callable[[Any], tuple[Any, ...]], G: Any, u: Any, on: Any, full: Any, plastic: Any
) -> tuple[tuple[Any, ...], Any]:
    """Rows solved with as much restitution as adds no energy, and its share (), 1 where all of it is there.

    `solve` takes b (m,) and returns impulses (m,), residual (m,), iterations and status; `full` and `plastic` (m,) are
    b with and without restitution, u (m,) the velocities of rows as contacts strike, if they do (`on`). Where plastic
    impulses add energy, since springs do, no more than theirs is allowed.
    """

    def play(now: _Play) -> _Play:
        solution, _, first, soft, stage, _ = now
        asked = np.where(stage == 2.0, _largest_share(G, u, first, soft[0]), np.where(stage == 1.0, 0.0, 1.0))
        found = tuple(solve(plastic + asked * (full - plastic)))
        impulse = found[0]
        most = np.where(stage == 2.0, np.maximum(gained(G, u, soft[0]), 0.0), 0.0)
        gains = on & (gained(G, u, impulse) > most + _ROUNDING * np.sum(np.abs(impulse * u)))
        undo = (stage == 2.0) & gains
        solution = tuple(np.where(undo, old, new) for old, new in zip(soft, found, strict=True))
        soft = tuple(np.where(stage == 1.0, new, old) for old, new in zip(soft, found, strict=True))
        first = np.where(stage == 0.0, impulse, first)
        more = np.where(stage == 0.0, gains, stage == 1.0)
        return _Play(solution, np.where(undo, 0.0, asked), first, soft, stage + 1.0, more)

    nothing, zero = np.zeros(len(u)), np.array(0.0)
    empty = (nothing, nothing, zero, zero)
    start = _Play(empty, np.array(1.0), nothing, empty, zero, np.array(True))
    last: _Play = while_loop(lambda now: now.more, play, start, _SOLVES)
    return last.solution, last.share


def _largest_share(G: Any, u: Any, impulse: Any, plastic: Any) -> Any:
    """s () at which impulses between plastic ones (m,) and others (m,) add no energy, a margin below it."""
    y, first = impulse - plastic, gained(G, u, plastic)
    slope, curve = np.sum(y * (u + G @ plastic)), 0.5 * np.sum(y * (G @ y))
    room = np.maximum(0.0, -first)
    share = (np.sqrt(slope * slope + 4.0 * curve * room) - slope) / np.where(curve > 0.0, 2.0 * curve, 1.0)
    return (1.0 - _MARGIN) * np.clip(share, 0.0, 1.0)


def lowered_restitution(limited: Any) -> str:
    """A sentence, after a space, if restitution was lowered in some states; nothing if it was not."""
    states = numpy.asarray(limited)
    if not states.any():
        return ""
    return f" {LOWERED}{f', in {states.sum()} of {states.size} states' if states.ndim else ''}."
