"""Constraints derived from another constraint: they have the same bodies and joints."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from delassus.constraints.basis.constraint import Constraint
from delassus.model.model import Model
from delassus.model.placement import Placement


@dataclass(frozen=True)
class DerivedConstraint(Constraint):
    """Base class of constraints derived from another one; subclasses define the rows.

    Attributes:
        of: The original constraint.
    """

    of: Constraint

    @property
    def label(self) -> str:
        """Its name, or that of the original."""
        return self.name or self.of.label

    def with_parameters(self, parameters: Any) -> Self:
        """The constraint with the parameters of its model."""
        return replace(self, of=self.of.with_parameters(parameters))

    def links(self, model: Model) -> tuple[int, ...]:
        """The links of the original."""
        return self.of.links(model)

    def velocities(self, model: Model) -> tuple[int, ...]:
        """The velocities of the original."""
        return self.of.velocities(model)

    def inner(self, model: Model) -> bool:
        """Whether the original is relative in axes of its bodies."""
        return self.of.inner(model)

    def relative(self, model: Model) -> bool:
        """Whether the original is relative."""
        return self.of.relative(model)

    def attachment(self, model: Model) -> tuple[int, Placement] | None:
        """The attachment of the original."""
        return self.of.attachment(model)
