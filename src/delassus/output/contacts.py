"""`ContactRecord`: impulses of rows and contacts that simulations record in a trajectory."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.output.errors import TrajectoryError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ContactRecord:
    """Impulses at the times of a trajectory, and their contacts.

    Attributes:
        impulse: (times, …, m) impulses of the last time step before each time [N·s, N·m·s]: t1, t2, n of each contact
            slot, moments about n, t1, t2 if there are such rows, then constraints, joint limits, joint friction.
        contact: (times, …, slots) indices of the candidates in the slots.
        time_step: Length of the time steps [s]: impulse over time step is force.
        shapes: Name of the shape of each candidate.
        rows: Rows of a contact: 3, 4 with torsional friction, 6 with rolling friction.

    >>> robot = dl.load("quadruped")
    >>> log = dl.Simulation(robot, time_step=2e-3).run(robot.posture("home"), steps=5)
    >>> log.contacts.contact_force.shape
    (6, 8, 3)
    """

    impulse: Array
    contact: Array
    time_step: float
    shapes: tuple[str, ...] = ()
    rows: int = 3

    def __getitem__(self, index: Any) -> ContactRecord:
        """Select times and environments."""
        return ContactRecord(self.impulse[index], self.contact[index], self.time_step, self.shapes, self.rows)

    @property
    def slots(self) -> int:
        """Number of contact slots."""
        return self.contact.shape[-1]

    @property
    def contact_impulse(self) -> Array:
        """(times, …, slots, 3) t1, t2, n of each contact [N·s]."""
        return self._by_contact[..., :3]

    @property
    def _by_contact(self) -> Array:
        """(times, …, slots, rows)."""
        return self.impulse[..., : self.rows * self.slots].reshape(*self.contact.shape, self.rows)

    @property
    def contact_force(self) -> Array:
        """(times, …, slots, 3) mean force t1, t2, n of each contact [N] over the last time step before each time."""
        return self.contact_impulse / self.time_step

    @property
    def contact_moment(self) -> Array:
        """(times, …, slots, 3) moments about t1, t2, n of each contact [N·m], of rolling and torsional friction."""
        moments = np.zeros((*self.contact.shape, 3))
        moments[..., [2, 0, 1][: self.rows - 3]] = self._by_contact[..., 3:] / self.time_step
        return moments

    @property
    def touching(self) -> tuple[str, ...]:
        """The names of the shapes that may be in contact."""
        return tuple(dict.fromkeys(self.shapes))

    def normal_force(self, shape: str) -> Array:
        """(times, …) the normal force [N] on one shape, summed over its points."""
        if not isinstance(shape, str) or shape not in self.shapes:
            may = f"those that may are: {', '.join(self.touching)}" if self.shapes else "none of this robot may"
            raise TrajectoryError(f"the shape {shape!r} has no contact candidates; {may}.", code="unknown-shape")
        is_shape = np.array([name == shape for name in self.shapes])[self.contact.astype(int)]
        return np.where(is_shape, self.contact_force[..., 2], 0.0).sum(-1)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """All fields as arrays, for files."""
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def of_arrays(cls, arrays: dict[str, NDArray[Any]]) -> ContactRecord:
        """Create from the result of `arrays`."""
        sizes = {"impulse": None, "contact": None, "time_step": 0, "shapes": 1}
        arrays = {"rows": np.array(3), **arrays}  # older files have three
        for name, ndim in (sizes | {"rows": 0}).items():
            kinds = "U" if name == "shapes" and arrays.get(name, np.zeros(0)).size else "iuf"
            if name not in arrays or arrays[name].dtype.kind not in kinds or ndim not in (None, arrays[name].ndim):
                raise TrajectoryError(
                    f"its contacts have no array {name!r} of the type that simulations record.", code="other-file"
                )
        impulse, contact, time_step, shapes = (arrays[name] for name in sizes)
        if not 0.0 < float(time_step) < math.inf:
            raise TrajectoryError(
                f"its contacts have steps of {float(time_step)} s; they must be positive.", code="other-file"
            )
        if float(arrays["rows"]) not in (3.0, 4.0, 6.0):
            raise TrajectoryError(
                f"its contacts have {float(arrays['rows']):g} rows; they must have 3, 4 or 6.", code="other-file"
            )
        if np.any(contact != np.floor(contact)) or np.any((contact < 0) | (contact >= max(len(shapes), 1))):
            raise TrajectoryError(f"its contacts have numbers beyond the {len(shapes)} candidates.", code="other-file")
        return cls(impulse, contact, float(time_step), tuple(map(str, shapes)), int(arrays["rows"]))
