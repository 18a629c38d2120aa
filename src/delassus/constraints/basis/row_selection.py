"""A subset of the rows of a constraint, as a constraint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from delassus.constraints.basis.constraint import NOT_NEGATIVE, BodyRows, Constraint, JointRow
from delassus.constraints.basis.derived import DerivedConstraint
from delassus.constraints.basis.motions import LinkMotions
from delassus.model.model import Model


@dataclass(frozen=True)
class RowSelection(DerivedConstraint):
    """The rows with the indices `chosen` of a constraint that is bound to its model."""

    chosen: tuple[int, ...]

    @classmethod
    def within(cls, constraint: Constraint, chosen: tuple[int, ...], count: int) -> Constraint:
        """Select rows of a constraint with `count` rows; returns the constraint itself if all are selected."""
        if len(chosen) == count:
            return constraint
        parameters: dict[str, Any] = {
            name: constraint.per_row(name, count)[list(chosen)] for name in ("acceleration", *NOT_NEGATIVE)
        }
        return cls(constraint, chosen, name=constraint.name, **parameters)

    def count(self, model: Model) -> int:
        """The number of selected rows."""
        return len(self.chosen)

    def bodies(self, motions: LinkMotions) -> tuple[BodyRows, ...]:
        """The selected rows of each K."""
        return tuple(BodyRows(body.link, body.K[list(self.chosen)]) for body in self.of.bodies(motions))

    def joints(self, motions: LinkMotions) -> tuple[JointRow, ...]:
        """The selected rows, renumbered."""
        number = {row: k for k, row in enumerate(self.chosen)}
        joint_rows = self.of.joints(motions)
        return tuple(JointRow(number[one.row], one.v, one.factor) for one in joint_rows if one.row in number)

    @property
    def has_reference(self) -> bool:
        """Whether the original has a reference."""
        return self.of.has_reference

    @property
    def holonomic(self) -> bool:
        """False in general: errors of rows that are left out become errors of the others."""
        return False

    @property
    def holds_positions(self) -> bool:
        """Whether the original constrains positions."""
        return self.of.holds_positions

    def reference_velocity(self, motions: LinkMotions) -> Any:
        """That of the selected rows."""
        moving = self.of.reference_velocity(motions)
        return None if moving is None else moving[list(self.chosen)]

    def velocity_product(self, motions: LinkMotions) -> Any:
        """Those of the selected rows."""
        return self.of.velocity_product(motions)[list(self.chosen)]

    def position_error(self, motions: LinkMotions) -> Any:
        """Those of the selected rows."""
        return self.of.position_error(motions)[list(self.chosen)]
