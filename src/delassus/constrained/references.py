"""Where the rows of a mechanism are against their references: errors of position, and the velocities asked for."""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.compiler.kernel import kernel
from delassus.constraints.mechanism import Mechanism
from delassus.constraints.motions import LinkMotions


@kernel("(nq)->(m)", inputs={"time": "()"})
def constraint_error(mechanism: Mechanism, q: Any, *, time: Any = None) -> Any:
    """e (m,) [m, rad]: how far every row is from its reference; ė = J v - (velocity of the reference) near e = 0.

    Rows without a reference, such as those of `Point("foot")`, are where they should be: their error is zero. `time`
    [s] is what references move with (input at run time), 0 if not given.
    """
    return errors_of(mechanism, _resting(mechanism, q, time))


def errors_of(mechanism: Mechanism, motions: LinkMotions) -> Any:
    """e (m,) in a state."""
    e = np.zeros(mechanism.m)
    for constraint, at in zip(mechanism.constraints, mechanism.row_ranges(), strict=True):
        if constraint.has_reference:
            e[at] = constraint.position_error(motions)
    return e


def velocities_asked(mechanism: Mechanism, q: Any, time: Any = None) -> Any:
    """w (m,) [m/s, rad/s]: the velocities J v of rows that move with their references; zero where those rest."""
    motions = _resting(mechanism, q, time)
    w = np.zeros(mechanism.m)
    for constraint, at in zip(mechanism.constraints, mechanism.row_ranges(), strict=True):
        moving = constraint.reference_velocity(motions)
        if moving is not None:
            w[at] = moving
    return w


def _resting(mechanism: Mechanism, q: Any, time: Any) -> LinkMotions:
    """The links in a configuration; neither errors nor references depend on velocities."""
    return LinkMotions.of(mechanism.model, q, np.zeros(mechanism.nv), time)
