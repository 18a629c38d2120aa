"""Drawings of trajectories over time, with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from delassus.errors import DelassusError
from delassus.simulation.ground import SimulationError

if TYPE_CHECKING:
    from delassus.simulation.trajectory import GroundTrajectory

LABELS: Final = {
    "contact_force": "normal force [N]",
    "energy": "energy [J]",
    "drift": "error of constraints [m, rad]",
    "residual": "residual of contacts [m/s]",
    "q": "configuration [rad, m]",
    "v": "velocity [rad/s, m/s]",
    "impulse": "impulse of rows [N·s, N·m·s]",
}
"""What can be drawn, and what is written beside it."""


class PlotError(DelassusError, ImportError):
    """A drawing without what draws it."""


def plot(log: GroundTrajectory, what: str, item: Any, ax: Any) -> Any:
    """The axes of a drawing of one item."""
    if what not in LABELS:
        raise SimulationError(f"there is no drawing of {what!r}; there are those of: {', '.join(LABELS)}.")
    if ax is None:
        _, ax = matplotlib_pyplot().subplots(layout="constrained")
    for values, label in _curves(log, what, item_index(log, item)):
        ax.plot(log.time, values, label=label)
    ax.set_xlabel("time [s]")
    ax.set_ylabel(LABELS[what])
    if what in ("drift", "residual"):
        ax.set_yscale("symlog", linthresh=1e-16)
    if ax.get_legend_handles_labels()[1]:
        ax.legend(fontsize="small")
    return ax


def matplotlib_pyplot() -> Any:
    """What makes figures; a sentence where there is none."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise PlotError("drawings need matplotlib: pip install 'delassus[plot]'.") from error
    return pyplot


def item_index(log: GroundTrajectory, item: Any) -> tuple[Any, ...]:
    """Where an item is in arrays (times, …): its numbers, or one number among all of a batch."""
    batch = log.energy.shape[1:]
    if not batch:
        return (slice(None),)
    numbers = item if isinstance(item, tuple) else tuple(map(int, np.unravel_index(int(item), batch)))
    return (slice(None), *numbers)


def _curves(log: GroundTrajectory, what: str, at: tuple[Any, ...]) -> list[tuple[Any, str | None]]:
    if what == "contact_force":
        every = [(log.normal_force(name)[at], name) for name in log.touching]
        return [(force, name) for force, name in every if np.any(force)]
    values = getattr(log, what)[at]
    return [(values, None)] if values.ndim == 1 else [(values[:, k], None) for k in range(values.shape[1])]
