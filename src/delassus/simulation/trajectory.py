"""`GroundTrajectory`: what a simulation leaves behind, time first."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.errors import DelassusError
from delassus.simulation.ground import SimulationError
from delassus.simulation.state import described

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GroundTrajectory:
    """States at some times, of one item or a batch; the first are those of the start.

    Attributes:
        time: (times,) [s].
        q: (times, …, nq) configurations [rad, m].
        v: (times, …, nv) velocities [rad/s, m/s].
        impulse: (times, …, m) impulses of the last step of time before [N·s, N·m·s]: t1, t2, n of each contact slot,
            then constraints, joint limits, dry friction.
        contact: (times, …, slots) numbers of the candidates that have the slots.
        energy: (times, …) [J].
        drift: (times, …) the largest error of a constraint [m, rad].
        residual: (times, …) the largest residual of a row [m/s].
        status: (times, …) marks that add up, see `Mark`.
        time_step: Of the steps of time [s]: an impulse over it is a force.
        shapes: Of each candidate, the name of its shape.
        simulation: What was simulated; None for one that was loaded from a file.
    """

    time: Array
    q: Array
    v: Array
    impulse: Array
    contact: Array
    energy: Array
    drift: Array
    residual: Array
    status: NDArray[np.int64]
    time_step: float
    shapes: tuple[str, ...] = ()
    simulation: Any = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        end = f"{self.time[-1]:g} s" if len(self) else "nothing"
        return f"GroundTrajectory({len(self)} times to {end}, items {self.q.shape[1:-1]})"

    @property
    def slots(self) -> int:
        """How many contacts were solved for."""
        return self.contact.shape[-1]

    @property
    def contact_impulse(self) -> Array:
        """(times, …, slots, 3) t1, t2, n of each contact [N·s]."""
        return self.impulse[..., : 3 * self.slots].reshape(*self.contact.shape, 3)

    @property
    def contact_force(self) -> Array:
        """(times, …, slots, 3) t1, t2, n of each contact [N], the mean over the last step of time before."""
        return self.contact_impulse / self.time_step

    def normal_force(self, shape: str) -> Array:
        """(times, …) the normal force [N] on one shape, all of its points together."""
        if shape not in self.shapes:
            raise SimulationError(f"no shape {shape!r} may touch; those that may are: {', '.join(self.touching)}.")
        own = np.array([name == shape for name in self.shapes])[self.contact.astype(int)]
        return np.where(own, self.contact_force[..., 2], 0.0).sum(-1)

    @property
    def touching(self) -> tuple[str, ...]:
        """The names of the shapes that may touch."""
        return tuple(dict.fromkeys(self.shapes))

    def describe(self) -> str:
        """What happened, in a sentence or several."""
        return described(self.status)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything but the simulation to a `.npz` file; one that was there is replaced when all is written."""
        path = Path(path)
        partial = path.with_name(path.name + ".partial")
        arrays: dict[str, Any] = {f.name: np.asarray(getattr(self, f.name)) for f in fields(self)[:-1]}
        try:
            with partial.open("wb") as file:
                np.savez(file, **arrays)
            partial.replace(path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            reason = error.strerror or error
            raise TrajectoryFileError(
                f"the trajectory could not be written to {path}: {reason}. It is still in memory: save it elsewhere."
            ) from error

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> GroundTrajectory:
        """Read what `save` has written."""
        with np.load(Path(path), allow_pickle=False) as file:
            names = [f.name for f in fields(cls)[:-1]]
            missing = [name for name in names if name not in file.files]
            if missing:
                raise TrajectoryFileError(f"{path} is no trajectory: it has no {', '.join(missing)}.")
            values: dict[str, Any] = {name: file[name] for name in names}
        values |= {"time_step": float(values["time_step"]), "shapes": tuple(values["shapes"].tolist())}
        return cls(**values)

    def plot(self, what: str = "contact_force", item: Any = 0, ax: Any = None) -> Any:
        """A drawing over time of one item, with matplotlib; gives its axes.

        Args:
            what: "contact_force", "energy", "drift", "residual", "q", "v", "impulse".
            item: Which of a batch.
            ax: Where to draw; a new figure by default.
        """
        from delassus.simulation.plots import plot

        return plot(self, what, item, ax)

    def save_html(self, path: str | os.PathLike[str], items: Any = None, frames_per_second: float = 50.0) -> None:
        """Write one file that plays the robots in any browser, offline: shapes, ground and contact forces.

        Args:
            path: Of the file.
            items: Numbers of the items of a batch that are shown; by default the first sixteen.
            frames_per_second: Of the film; states in between are left out.
        """
        from delassus.simulation.film import save_html

        save_html(self, path, items, frames_per_second)


class TrajectoryFileError(DelassusError, OSError):
    """A trajectory that could not be written or read."""
