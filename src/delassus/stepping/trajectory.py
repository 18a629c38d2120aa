"""Motions as they were simulated: states at some times, of one item or a batch, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delassus.constrained.rows.references import constraint_error
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.forces.passive import spring_energy
from delassus.dynamics.mass.energy import kinetic_energy, potential_energy
from delassus.errors import DelassusError
from delassus.stepping.between import between
from delassus.stepping.drift import velocity_error
from delassus.stepping.status import MotionStatus

Floats = NDArray[np.float64]

_ARRAYS: Final = ("time", "q", "v", "status", "ended", "steps", "rejected", "residual")
_EVENT: Final = "event "


class State(NamedTuple):
    """One moment of a trajectory: time [s], q (…, nq), v (…, nv)."""

    time: float
    q: Floats
    v: Floats


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A motion, or a batch of them; time is the first axis. One of your own needs times, q, v and its mechanism.

    Attributes:
        time: (times,) [s].
        q: Configurations (times, …, nq) [rad, m].
        v: Velocities (times, …, nv) [rad/s, m/s].
        status: (…) numbers of `MotionStatus`.
        ended: (…) [s] until when each item was followed; from there on its states repeat.
        steps: (…) how many were made.
        rejected: (…) how many were made again, being too long or in search of an event.
        residual: (…) what is left of the equations of implicit steps, in radians or lengths of the robot.
        events: By name, (times - 1, …) [s] when they were last between two times; NaN where they were not.
        mechanism: What moves; None if it was loaded without.
    """

    time: Floats
    q: Floats
    v: Floats
    status: Any = None
    ended: Any = None
    steps: Any = None
    rejected: Any = None
    residual: Any = None
    events: Mapping[str, Floats] = field(default_factory=dict)
    mechanism: Mechanism | None = None

    def __post_init__(self) -> None:
        batch = self.q.shape[1:-1]
        usual = {"status": 0, "ended": self.time[-1], "steps": len(self) - 1, "rejected": 0, "residual": 0.0}
        for name, value in usual.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, np.full(batch, value))
        for array in (*(getattr(self, name) for name in _ARRAYS), *self.events.values()):
            if isinstance(array, np.ndarray):
                array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        name = "" if self.mechanism is None else f" of {self.mechanism.model.name!r}"
        batch = self.q.shape[1:-1]
        items = f", {' × '.join(map(str, batch))} items" if batch else ""
        return f"<Trajectory{name}: {len(self)} times from {self.time[0]:g} to {self.time[-1]:g} s{items}>"

    def __getitem__(self, index: Any) -> Trajectory | State:
        """A moment, `log[-1]`; a part in time, `log[::10]`; items of a batch, `log[:, 3]`."""
        first, *items = index if isinstance(index, tuple) else (index,)
        chosen = tuple(items)
        if isinstance(first, (int, np.integer)):
            return State(float(self.time[first]), self.q[(first, *chosen)], self.v[(first, *chosen)])
        start, stop, step = (first if isinstance(first, slice) else slice(None)).indices(len(self))
        if not isinstance(first, slice) or step < 1 or stop <= start:
            raise DelassusError(f"the times of a trajectory are chosen by a number or a slice forwards, not {first!r}.")
        per_item = {name: np.asarray(getattr(self, name))[chosen] for name in _ARRAYS[3:]}
        thinned = step > 1  # what happened between times that are left out has no place
        kept = {} if thinned else self.events
        events = {name: x[start : stop - 1][(slice(None), *chosen)] for name, x in kept.items()}
        q, v = (x[first][(slice(None), *chosen)] for x in (self.q, self.v))
        return replace(self, time=self.time[first], q=q, v=v, events=events, **per_item)

    @property
    def statuses(self) -> Any:
        """The `MotionStatus` of one item, or an array of them."""
        found = np.vectorize(MotionStatus, otypes=[object])(self.status)
        return found.item() if found.ndim == 0 else found

    def describe(self) -> str:
        """How it ended, in a sentence; of the items that did not get to the end, the worst, where there are several."""
        status = np.asarray(self.status)
        worst = next(s for s in reversed(MotionStatus) if s is MotionStatus.DONE or np.any(status == s))
        if not status.ndim or worst is MotionStatus.DONE:
            return worst.sentence
        return f"{worst.sentence[:-1]}, in {np.sum(status == worst)} of {status.size} items."

    @property
    def energy(self) -> Floats:
        """(times, …) [J]: kinetic, of gravity, and of the springs in the joints."""
        model = self._mechanism.model
        found: Floats = kinetic_energy(model, self.q, self.v) + potential_energy(model, self.q)
        return found + spring_energy(model, self.q)

    @property
    def drift(self) -> Floats:
        """(times, …) [m, rad]: the largest error of position of any constraint."""
        mechanism = self._mechanism
        if not mechanism.m:
            return np.zeros(self.q.shape[:-1])
        return np.abs(constraint_error(mechanism, self.q, time=self._times)).max(-1)

    @property
    def velocity_drift(self) -> Floats:
        """(times, …) [m/s, rad/s]: the largest velocity of any constraint against its reference."""
        mechanism = self._mechanism
        if not mechanism.m:
            return np.zeros(self.q.shape[:-1])
        return np.abs(velocity_error(mechanism, self.q, self.v, time=self._times)).max(-1)

    def at(self, times: ArrayLike) -> State:
        """States (…) between the times of the trajectory: cubic along the way from each to the next (dense output).

        Errors go with the fourth power of the distance of the times, and q keeps to its manifold.
        """
        wanted = np.asarray(times, float)
        low, high = self.time[0], self.time[-1]
        outside = ~((wanted >= low) & (wanted <= high))
        if np.any(outside):
            raise DelassusError(
                f"the time {np.atleast_1d(wanted)[np.atleast_1d(outside)][0]:g} s is not in the trajectory, which goes "
                f"from {low:g} to {high:g} s."
            )
        k = np.clip(np.searchsorted(self.time, wanted, side="right") - 1, 0, len(self) - 2)
        span = self.time[k + 1] - self.time[k]
        batch = (...,) + (None,) * (self.q.ndim - 2)
        share, span = ((wanted - self.time[k]) / span)[batch], span[batch]
        found = between(self._mechanism.model, self.q[k], self.v[k], self.q[k + 1], self.v[k + 1], share, span)
        return State(wanted, *found)  # type: ignore[arg-type]

    def save(self, path: str | Path) -> None:
        """Write it to a file of NumPy (.npz), without its mechanism."""
        arrays = {name: np.asarray(getattr(self, name)) for name in _ARRAYS}
        with Path(path).open("wb") as file:
            arrays |= {_EVENT + name: x for name, x in self.events.items()}
            np.savez_compressed(file, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, path: str | Path, mechanism: Mechanism | None = None) -> Trajectory:
        """Read what `save` wrote; energies and drift need the mechanism."""
        with np.load(path, allow_pickle=False) as file:
            missing = [name for name in _ARRAYS if name not in file]
            if missing:
                raise DelassusError(f"{path} is not a trajectory: it has no {', '.join(missing)}.")
            arrays = {name: file[name] for name in _ARRAYS}
            events = {name.removeprefix(_EVENT): file[name] for name in file if name.startswith(_EVENT)}
        if mechanism is not None and (arrays["q"].shape[-1], arrays["v"].shape[-1]) != (mechanism.nq, mechanism.nv):
            raise DelassusError(
                f"{path} is a trajectory with nq {arrays['q'].shape[-1]} and nv {arrays['v'].shape[-1]}; the mechanism "
                f"has {mechanism.nq} and {mechanism.nv}."
            )
        return cls(**arrays, events=events, mechanism=mechanism)

    def plot(self, what: str = "q", axes: Any = None) -> Any:
        """Draw "q", "v", "energy", "drift" or "velocity_drift" over time, on axes of matplotlib; returns these."""
        units = {"q": "rad, m", "v": "rad/s, m/s", "energy": "J", "drift": "m, rad", "velocity_drift": "m/s, rad/s"}
        if what not in units:
            raise DelassusError(f"there is no {what!r} to draw; there are: {', '.join(units)}.")
        if axes is None:
            try:
                from matplotlib import pyplot
            except ImportError:
                raise DelassusError("drawing needs matplotlib: pip install 'delassus[plot]'.") from None
            axes = pyplot.subplots()[1]
        axes.plot(self.time, getattr(self, what).reshape(len(self), -1))
        axes.set(xlabel="time [s]", ylabel=f"{what.replace('_', ' ')} [{units[what]}]")
        return axes

    @property
    def _times(self) -> Floats:
        return self.time[(...,) + (None,) * (self.q.ndim - 2)]

    @property
    def _mechanism(self) -> Mechanism:
        if self.mechanism is None:
            raise DelassusError("this trajectory does not know its mechanism: Trajectory.load(path, mechanism).")
        return self.mechanism
