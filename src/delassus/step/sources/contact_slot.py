"""A contact slot as a constraint, in a state whose contacts are known.

The candidate of a slot may depend on the state, and so may its two bodies. Its rows t1, t2, n (spin about n; roll about
t1 and t2) therefore act on the velocities of all joints, with the contact Jacobian of `stages.rows`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from delassus.constraints.basis.constraint import Constraint, JointRow
from delassus.constraints.basis.motions import LinkMotions
from delassus.model.model import Model


@dataclass(frozen=True, kw_only=True)
class ContactSlot(Constraint):
    """The rows of one contact slot.

    Attributes:
        J: (rows, nv) the Jacobian of its contact in a state.
        distance: () the gap [m], negative if the bodies penetrate.
    """

    J: Any
    distance: Any

    @property
    def label(self) -> str:
        """The name."""
        return self.name

    def count(self, model: Model) -> int:
        """The number of rows: 3, with torsional friction 4, with rolling friction as well 6."""
        return len(self.J)

    def velocities(self, model: Model) -> tuple[int, ...]:
        """All velocities."""
        return tuple(range(model.nv))

    def joints(self, motions: LinkMotions) -> tuple[JointRow, ...]:
        """The rows of the slot on all velocities."""
        rows, nv = self.J.shape
        return tuple(JointRow(row, v, self.J[row, v]) for row in range(rows) for v in range(nv))

    def gap(self, motions: LinkMotions) -> Any:
        """The gap [m]."""
        return self.distance
