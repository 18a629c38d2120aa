"""Plots of trajectories over time, with matplotlib."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from delassus.output.arguments import item_number
from delassus.output.errors import PlotError, TrajectoryError

if TYPE_CHECKING:
    from delassus.output.trajectory import Trajectory

OF_MOTIONS: Final = {
    "q": "configuration [rad, m]",
    "v": "velocity [rad/s, m/s]",
    "energy": "energy [J]",
    "drift": "error of constraints [m, rad]",
    "velocity_drift": "velocity of constraints [m/s, rad/s]",
}
OF_SIMULATIONS: Final = {
    "contact_force": "normal force [N]",
    "impulse": "impulse of rows [N·s, N·m·s]",
    "residual": "residual of contacts [m/s]",
}
"""Quantities that can be plotted, with labels."""

ITEMS: Final = 16
"""Default number of environments of a batch that are plotted."""


def plot(log: Trajectory, what: str | None, item: Any, ax: Any) -> Any:
    """Axes with a plot."""
    labels = OF_MOTIONS if log.contacts is None else OF_SIMULATIONS | OF_MOTIONS
    what = next(iter(labels)) if what is None else what
    if not isinstance(what, str) or what not in labels:
        raise TrajectoryError(f"{what!r} cannot be drawn; choose one of: {', '.join(labels)}.", code="unknown-option")
    check_axes(ax)
    if ax is None:
        _, ax = pyplot().subplots(layout="constrained")
    for values, label in _curves(log, what):
        lines = ax.plot(log.time, _of_items(log, values, item), color=next_color(ax) if label else None)
        lines[0].set_label(plain_text(label))
    ax.set(xlabel="time [s]", ylabel=labels[what])
    if what in ("drift", "velocity_drift", "residual"):
        ax.set_yscale("symlog", linthresh=1e-16)
    if ax.get_legend_handles_labels()[1]:
        ax.legend(fontsize="small")
    return ax


def pyplot() -> Any:
    """Import pyplot, or raise an error that says how to install matplotlib."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise PlotError("drawings need matplotlib: pip install 'delassus[plot]'.") from error
    return pyplot


def check_axes(*axes: Any) -> None:
    """Raise an error unless these are matplotlib axes, or None."""
    for ax in axes:
        if ax is not None and not hasattr(ax, "annotate"):
            raise TrajectoryError(f"ax is a {type(ax).__name__}; it must be axes of matplotlib.", code="wrong-type")


def plain_text(name: str | None) -> str | None:
    """A name as plain text in matplotlib, where a dollar starts a formula and a leading underscore hides a legend
    entry.
    """
    if name is None:
        return None
    text = name.replace("$", r"\$")
    return "\u200b" + text if text.startswith("_") else text


def next_color(ax: Any) -> str:
    """One color for all environments of a named curve."""
    return f"C{len(ax.get_legend_handles_labels()[1]) % 10}"


def _curves(log: Trajectory, label: str) -> Iterator[tuple[Any, str | None]]:
    """The plotted arrays (times, …), with their names."""
    if label != "contact_force" or log.contacts is None:
        yield getattr(log, label), None
        return
    for shape in log.contacts.touching:
        force = log.normal_force(shape)
        if np.any(force):
            yield force, shape


def _of_items(log: Trajectory, values: Any, item: Any) -> Any:
    """(times, curves) of an environment, given by its index or indices; by default of the first ones."""
    batch = log.q.shape[1:-1]
    count = int(np.prod(batch, dtype=int))
    rows = values.reshape(len(log), count, -1)
    if item is None:
        return rows[:, :ITEMS].reshape(len(log), -1)
    return rows[:, item_number(item, batch)]
