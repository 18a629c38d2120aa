"""Explains a flag of a simulation: repeats the run up to the flagged step, and describes and draws it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from delassus.errors import BadArgument
from delassus.output.arguments import item_number
from delassus.output.errors import NotRecorded
from delassus.output.explanation import Explanation
from delassus.output.replay_record import FAILURES, NEVER
from delassus.output.trajectory import Trajectory
from delassus.step.flags import Mark, describe_marks

_SHOWN: Final = 20
"""Maximum number of control periods drawn before the flagged one."""


def explain(log: Trajectory, item: Any, control: Any) -> Explanation:
    """See `Trajectory.explain`."""
    if log.contacts is None:
        raise NotRecorded("this trajectory has no flags: dl.Simulation records them, simulate_motion does not.")
    batch = log.q.shape[1:-1]
    at = tuple(int(k) for k in np.unravel_index(item_number(item, batch), batch)) if batch else ()
    selection: Any = (slice(None), *at)
    status = np.asarray(log.status)[selection]
    if status[0] & int(Mark.FROZEN):
        return Explanation(f"At {log.time[0]:g} s: {describe_marks(status[0])} It started so.")
    period, mark = _first_failure(log, at, status)
    if period is None:
        worst = float(np.max(log.residual[selection]))
        return Explanation(f"Nothing happened to item {item}: its steps were solved to {worst:.3g} m/s.")
    end = log.time[0] if log.run is None else log.run.begin + log.run.period * (period + 1)
    text = f"At {end:g} s: {describe_marks(int(mark))}"
    try:
        return _explain_period(log, at, period, text, control)
    except NotRecorded as error:
        return Explanation(f"{text} {error}", period)
    except (BadArgument, np.linalg.LinAlgError) as error:
        return Explanation(f"{text} The step could not be made again: {error}", period)


def _first_failure(log: Trajectory, at: tuple[int, ...], status: Any) -> tuple[int | None, Mark]:
    """The period in which the worst flag of an environment was first raised, and its mark; None without flags."""
    for row, mark in enumerate(FAILURES):
        if log.replay is not None:
            period = int(log.replay.failures[(row, *at)])
            if period != NEVER:
                return period, mark
            continue
        flagged = np.flatnonzero(status & int(mark))
        if len(flagged):
            k = int(flagged[0])
            periods_before = k if log.run is None else log.run.periods(float(log.time[k]))
            return max(periods_before - 1, 0), mark
    return None, Mark.FROZEN


def _explain_period(log: Trajectory, at: tuple[int, ...], period: int, text: str, control: Any) -> Explanation:
    """Describe the step in which an environment was flagged."""
    if log.simulation is None or log.run is None:
        raise NotRecorded("The log has no simulation, which is needed to repeat the step.")
    now = log.simulation.replay(log, at, period)
    u, words = now.control if control is None else control, ""
    if u is None:
        words = ' Controls are not recorded, and taken as zero: run(record="replay") records them.'
    if now.push is not None:
        words += " It is pushed from outside."
    first_period = max(period - _SHOWN, log.run.periods(float(log.time[0])))
    part = None
    if log.replay is not None:
        part = log.simulation.replayed_log(log, at, first_period, period)
    return Explanation(f"{text}{words} {now.sim.explain(now.state, u)}", period, now.state, part)
