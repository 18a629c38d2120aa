"""Unilateral constraints, g(q) ≥ 0: ropes, end stops, obstacles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import delassus.numpy as np
from delassus.constraints.basis.constraint import BodyRows, Constraint, ConstraintError, JointRow
from delassus.constraints.basis.derived import DerivedConstraint
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.basis.row_selection import RowSelection
from delassus.model.model import Model, ParametricModel


@dataclass(frozen=True)
class _Signed(DerivedConstraint):
    """Another constraint, with the sign of all rows optionally reversed.

    Attributes:
        of: The constraint.
        sign: +1, or -1 to reverse it.
    """

    sign: float = 1.0

    def count(self, model: Model) -> int:
        """The number of rows of the original."""
        return self.of.count(model)

    def bind(self, model: Model) -> Constraint:
        """Bind the original to a model."""
        return replace(self, of=self.of.bind(model))

    def bind_parametric(self, parametric: ParametricModel) -> Constraint:
        """Bind the original to a model with parameters."""
        return replace(self, of=self.of.bind_parametric(parametric))

    def bodies(self, motions: LinkMotions) -> tuple[BodyRows, ...]:
        """The rows K of the original times the sign."""
        return tuple(BodyRows(body.link, self.sign * body.K) for body in self.of.bodies(motions))

    def joints(self, motions: LinkMotions) -> tuple[JointRow, ...]:
        """The factors of velocities of the original times the sign."""
        return tuple(JointRow(row.row, row.v, self.sign * row.factor) for row in self.of.joints(motions))

    @property
    def has_reference(self) -> bool:
        """True: the reference is where it becomes active."""
        return True

    def reference_velocity(self, motions: LinkMotions) -> Any:
        """That of the original times the sign."""
        moving = self.of.reference_velocity(motions)
        return None if moving is None else self.sign * moving

    def velocity_product(self, motions: LinkMotions) -> Any:
        """Those of the original times the sign."""
        return self.sign * self.of.velocity_product(motions)

    def position_error(self, motions: LinkMotions) -> Any:
        """That of the original times the sign."""
        return self.sign * self.of.position_error(motions)


@dataclass(frozen=True)
class Unilateral(_Signed):
    """The rows of another constraint as unilateral ones: 0 ≤ ±g(q) ⊥ λ ≥ 0.

    g is the constraint's position error. A rope is a `Distance` that may be shorter, `at_most(Distance(…))`; a strut
    that only pushes is `at_least(Distance(…))`; any user function is `at_least(Implicit(…))`. Time steps support them
    (`contact_dynamics`, `compliant_step`, `Simulation`), since they decide which rows are active.

    Attributes:
        of: The constraint.
        sign: +1 for g ≥ 0, -1 for g ≤ 0.

    >>> rope = dl.constraints.at_most(dl.Distance("tip", "world", length=1.0))
    >>> isinstance(rope, dl.constraints.Unilateral)
    True
    """

    def __post_init__(self) -> None:
        if not isinstance(self.of, Constraint) or isinstance(self.of, Unilateral):
            raise ConstraintError(
                f"a Unilateral needs a constraint, such as Distance('a', 'b', length=1.0); got {self.of!r}.",
                code="wrong-type",
            )
        if self.sign not in (1.0, -1.0):
            raise ConstraintError(
                f"the sign of {self.label!r} is {self.sign!r}; it must be 1 for g ≥ 0 or -1 for g ≤ 0.",
                code="out-of-range",
            )
        if not self.of.has_reference or not self.of.holds_positions:
            raise ConstraintError(
                f"{self.label!r} has no position reference, so it cannot be unilateral; pass one, such as a length or "
                "a placement.",
                code="no-reference",
            )
        super().__post_init__()

    def split(self, model: Model) -> tuple[UnilateralRow, ...]:
        """One constraint for each row."""
        count = self.count(model)
        rows = (RowSelection.within(self.of, (k,), count) for k in range(count))
        names = [self.label] if count == 1 else [f"{self.label}_{k + 1}" for k in range(count)]
        return tuple(UnilateralRow(row, self.sign, name=name) for row, name in zip(rows, names, strict=True))


@dataclass(frozen=True)
class UnilateralRow(_Signed):
    """One row of a unilateral constraint."""

    def gap(self, motions: LinkMotions) -> Any:
        """±g () [m, rad]: positive where it is inactive."""
        return self.sign * self.of.position_error(motions)[0]

    def bodies(self, motions: LinkMotions) -> tuple[BodyRows, ...]:
        """K times the sign; zero for a slack rope between coincident points, which has no direction and is inactive."""
        slack = self.gap(motions) > 0.0
        rows = super().bodies(motions)
        return tuple(BodyRows(body.link, np.where(slack & (body.K != body.K), 0.0, body.K)) for body in rows)


def at_least(constraint: Constraint) -> Unilateral:
    """Make a constraint unilateral, g(q) ≥ 0: it pushes where its position error would become negative.

    >>> from delassus.constraints import at_least
    >>> dl.Mechanism(dl.load("double_pendulum"), at_least(dl.Distance("tip", "world", length=0.5))).m
    0
    """
    return Unilateral(constraint, 1.0)


def at_most(constraint: Constraint) -> Unilateral:
    """Make a constraint unilateral, g(q) ≤ 0: a rope is a `Distance` that is at most its length.

    >>> from delassus.constraints import at_most
    >>> dl.Mechanism(dl.load("double_pendulum"), at_most(dl.Distance("tip", "world", length=1.0))).m
    0
    """
    return Unilateral(constraint, -1.0)
