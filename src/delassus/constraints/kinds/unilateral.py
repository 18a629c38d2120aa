"""One-sided constraints, g(q) ≥ 0: ropes, end stops, obstacles."""

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
    """Another constraint, or the same with all rows turned around.

    Attributes:
        of: The constraint.
        sign: +1, or -1 to turn it around.
    """

    sign: float = 1.0

    def count(self, model: Model) -> int:
        """As the constraint."""
        return self.of.count(model)

    def bind(self, model: Model) -> Constraint:
        """The constraint as it is on a model."""
        return replace(self, of=self.of.bind(model))

    def bind_parametric(self, parametric: ParametricModel) -> Constraint:
        """Bind to a model with parameters."""
        return replace(self, of=self.of.bind_parametric(parametric))

    def bodies(self, motions: LinkMotions) -> tuple[BodyRows, ...]:
        """The rows K of the constraint, with the sign of the side."""
        return tuple(BodyRows(body.link, self.sign * body.K) for body in self.of.bodies(motions))

    def joints(self, motions: LinkMotions) -> tuple[JointRow, ...]:
        """The factors of velocities of the constraint, with the sign of the side."""
        return tuple(JointRow(row.row, row.v, self.sign * row.factor) for row in self.of.joints(motions))

    @property
    def has_reference(self) -> bool:
        """Always: where it begins to act."""
        return True

    def reference_velocity(self, motions: LinkMotions) -> Any:
        """± that of the constraint."""
        moving = self.of.reference_velocity(motions)
        return None if moving is None else self.sign * moving

    def velocity_product(self, motions: LinkMotions) -> Any:
        """± that of the constraint."""
        return self.sign * self.of.velocity_product(motions)

    def position_error(self, motions: LinkMotions) -> Any:
        """± that of the constraint."""
        return self.sign * self.of.position_error(motions)


@dataclass(frozen=True)
class Unilateral(_Signed):
    """The rows of another constraint, each of which may be exceeded on one side: 0 ≤ ±g(q) ⊥ λ ≥ 0.

    g is the constraint's error of position. A rope is a `Distance` that may be shorter, `at_most(Distance(…))`; a rod
    that only pushes is `at_least(Distance(…))`; any g that you write is `at_least(Implicit(…))`. Steps of time take
    them (`contact_dynamics`, `compliant_step`, `Simulation`): whether such a row acts is known at a step's end.

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
                f"a Unilateral is one side of a constraint such as Distance('a', 'b', length=1.0), not of {self.of!r}.",
                code="wrong-type",
            )
        if self.sign not in (1.0, -1.0):
            raise ConstraintError(
                f"the sign of {self.label!r} is {self.sign!r}; it must be 1 for g ≥ 0 or -1 for g ≤ 0.",
                code="out-of-range",
            )
        if not self.of.has_reference or not self.of.holds_positions:
            raise ConstraintError(
                f"{self.label!r} has no position, so it cannot be one-sided; give it one, such as a length or a "
                "placement.",
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
    """One row of a one-sided constraint, which only pushes."""

    def gap(self, motions: LinkMotions) -> Any:
        """±g () [m, rad]: how far it is from acting."""
        return self.sign * self.of.position_error(motions)[0]

    def bodies(self, motions: LinkMotions) -> tuple[BodyRows, ...]:
        """± its K; zero where it has no direction and does not act: a slack rope between points that meet."""
        slack = self.gap(motions) > 0.0
        rows = super().bodies(motions)
        return tuple(BodyRows(body.link, np.where(slack & (body.K != body.K), 0.0, body.K)) for body in rows)


def at_least(constraint: Constraint) -> Unilateral:
    """One side of a constraint, g(q) ≥ 0: it pushes where its error of position would become negative.

    >>> from delassus.constraints import at_least
    >>> dl.Mechanism(dl.load("double_pendulum"), at_least(dl.Distance("tip", "world", length=0.5))).m
    0
    """
    return Unilateral(constraint, 1.0)


def at_most(constraint: Constraint) -> Unilateral:
    """One side of a constraint, g(q) ≤ 0: a rope is a `Distance` that is at most its length.

    >>> from delassus.constraints import at_most
    >>> dl.Mechanism(dl.load("double_pendulum"), at_most(dl.Distance("tip", "world", length=1.0))).m
    0
    """
    return Unilateral(constraint, -1.0)
