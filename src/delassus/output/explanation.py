"""Why an item of a simulation was flagged: its log up to there, and the step in question made again."""

from __future__ import annotations

from typing import Any

import numpy as np

from delassus.errors import BadArgument
from delassus.output.choices import item_number
from delassus.output.errors import NotRecorded
from delassus.output.trajectory import Trajectory
from delassus.step.marks import Mark, described


def explain(log: Trajectory, item: Any, control: Any) -> str:
    """See `Trajectory.explain`."""
    if log.contacts is None:
        raise NotRecorded("this motion has no marks: dl.Simulation records them, simulate_motion has none.")
    batch = log.q.shape[1:-1]
    at = tuple(int(k) for k in np.unravel_index(item_number(item, batch), batch)) if batch else ()
    own: Any = (slice(None), *at)
    status = np.asarray(log.status)[own]
    flagged = np.flatnonzero(status & ~int(Mark.CLIPPED))
    if not len(flagged):
        worst = float(np.max(log.residual[own]))
        return f"Nothing happened to item {item}: its steps were solved to {worst:.3g} m/s."
    k = int(flagged[0])
    text = f"At {log.time[k]:g} s: {described(status[k])}"
    if k == 0:
        return f"{text} It started so."
    if log.simulation is None or log.run is None:
        return f"{text} The log does not know its simulation, with which the step could be made again."
    if log.run.periods(log.time[k]) - log.run.periods(log.time[k - 1]) > 1:
        return f"{text} States between were not recorded: run with every=1 to see the step in which it began."
    simulation, words = log.simulation, "" if control is not None else " Controls are not recorded, and taken as zero:"
    if simulation.ground.batch:
        return f"{text} Steps on grounds of each item are not made again."
    try:
        return f"{text}{words} {simulation.explain(log[(k - 1, *at)], control)}"
    except (BadArgument, np.linalg.LinAlgError) as error:
        return f"{text} The step could not be made again: {error}"
