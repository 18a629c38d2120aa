"""`ShapeContacts`: the contacts of shapes in a step, and views of rows by their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from delassus.common.names import UnknownName
from delassus.constrained.rows.counts import as_integer
from delassus.step.scene import Scene

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ShapeContacts:
    """Contacts of shapes, for one state or a batch; a slot has rows even if its contact is open.

    Attributes:
        names: The name of each candidate, "shape" or "shape on other"; points of one shape are numbered, "trunk_2".
        candidate: (…, slots) the candidate of each slot.
        point: (…, slots, 3) contact points in the world [m].
        normal: (…, slots, 3) normals, towards the first shape.
        overflow: (…) whether more candidates touch than there are slots.

    >>> robot = dl.load("quadruped")
    >>> rest = np.zeros(robot.nv)
    >>> step = dl.contact_dynamics(robot, robot.posture("home"), rest, rest, touching="*_calf_1", time_step=1e-3)
    >>> sorted(step.contacts.name.tolist())[0]
    'front_left_calf_1'
    """

    names: tuple[str, ...]
    candidate: NDArray[np.int64]
    point: Array
    normal: Array
    overflow: NDArray[np.bool_]

    @classmethod
    def of(cls, scene: Scene, candidate: Array, point: Array, normal: Array, overflow: Array) -> ShapeContacts:
        """Create contacts from the results of a kernel."""
        return cls(candidate_names(scene), as_integer(candidate), point, normal, np.asarray(overflow) > 0.5)

    @property
    def name(self) -> NDArray[np.object_]:
        """(…, slots) the name of the contact in each slot."""
        return np.array(self.names, object)[self.candidate]


def candidate_names(scene: Scene) -> tuple[str, ...]:
    """The names of all candidates."""
    names = [name for _, _, name in scene.candidate_shapes]
    counts: dict[str, int] = {}
    result = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        result.append(name if names.count(name) == 1 else f"{name}_{counts[name]}")
    return tuple(result)


class ShapeRows(Mapping[str, Array]):
    """Views of values (…, m) by name, for contacts of shapes (zero without a slot) and for all other rows."""

    def __init__(self, scene: Scene, contacts: ShapeContacts, values: Array) -> None:
        self._contacts, self._values = contacts, values
        rows, first = scene.contact_rows, scene.contact_end
        self._by_slot = values[..., :first].reshape(*values.shape[:-1], scene.slots, rows)
        others = scene.row_mechanism.slices.items()
        self._others = {name: slice(first + own.start, first + own.stop) for name, own in others}

    def __getitem__(self, name: str) -> Array:
        if name in self._others:
            return self._values[..., self._others[name]]
        if name not in self._contacts.names:
            raise UnknownName("contact or row named", str(name), list(self))
        mine = self._contacts.candidate == self._contacts.names.index(name)
        return np.where(mine[..., None], self._by_slot, 0.0).sum(-2)

    def __iter__(self) -> Iterator[str]:
        yield from self._contacts.names
        yield from self._others

    def __len__(self) -> int:
        return len(self._contacts.names) + len(self._others)
