"""A mechanism: a robot and what holds it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from types import MappingProxyType
from typing import Any

from delassus.constraints.constraint import Constraint, ConstraintError
from delassus.constraints.stability import check_gains
from delassus.constraints.ties import constraint_of
from delassus.errors import DelassusError, short
from delassus.model.model import Frame, Model
from delassus.model.of_model import OfModel


@dataclass(frozen=True)
class Mechanism(OfModel):
    """A model and its constraints, frozen and compared by content; what the algorithms of `constrained` take.

    Attributes:
        model: The robot.
        constraints: What holds it and closes its loops; those that come with the model are first.
        step: The time step [s] that the mechanism will be simulated with, if it is known: gains are then checked.
        model_constraints: Whether to include the model's own constraints; False once they are.
    """

    model: Model
    constraints: tuple[Constraint, ...] = ()
    step: float | None = None
    model_constraints: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.model, Model):
            raise DelassusError(f"a mechanism is made of a Model, not of {type(self.model).__name__}.")
        given = _several(self.constraints)
        for constraint in given:
            if not isinstance(constraint, Constraint):
                raise _no_constraint(self.model, constraint)
        own = map(constraint_of, self.model.constraints if self.model_constraints else ())
        object.__setattr__(self, "constraints", tuple(c.bound(self.model) for c in (*own, *given)))
        object.__setattr__(self, "model_constraints", False)
        if self.step is not None and not (isinstance(self.step, Real) and 0.0 < self.step < math.inf):
            raise DelassusError(f"the step is {self.step!r} s; it is one number, positive and finite.")
        for constraint in self.constraints:
            constraint.links(self.model), constraint.velocities(self.model)
            if self.step is not None:
                check_gains(constraint, self.model, self.step)

    def __repr__(self) -> str:
        return f"<Mechanism {self.model.name!r}: nq {self.nq}, nv {self.nv}, {self.m} rows: {', '.join(self.names)}>"

    @property
    def __kernel_model__(self) -> Model:
        """What kernels of a `Model` get."""
        return self.model

    @cached_property
    def m(self) -> int:
        """Number of rows of all constraints."""
        return sum(constraint.count(self.model) for constraint in self.constraints)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """A name for each constraint; the second of a name gets the suffix _2, the third _3."""
        names: list[str] = []
        for constraint in self.constraints:
            name, k = constraint.label, 2
            while name in names:
                name, k = f"{constraint.label}_{k}", k + 1
            names.append(name)
        return tuple(names)

    @property
    def slices(self) -> Mapping[str, slice]:
        """The rows of each constraint by its name, in the order of the rows."""
        # Not kept: a view that cannot be changed cannot be pickled either.
        return MappingProxyType(dict(zip(self.names, self.row_ranges(), strict=True)))

    def row_ranges(self) -> Iterator[slice]:
        """The rows of each constraint."""
        start = 0
        for constraint in self.constraints:
            stop = start + constraint.count(self.model)
            yield slice(start, stop)
            start = stop


def _several(constraints: Any) -> tuple[Any, ...]:
    """One constraint alone, or those of a list."""
    if isinstance(constraints, Constraint | Frame | str):
        return (constraints,)
    if isinstance(constraints, bytes | Mapping) or not isinstance(constraints, Iterable):
        raise ConstraintError(
            f"the constraints are {short(repr(constraints))}; they are one constraint or a list of them."
        )
    return tuple(constraints)


def _no_constraint(model: Model, given: Any) -> ConstraintError:
    """The error for something that is no constraint, with what may have been meant."""
    name = given.name if isinstance(given, Frame) else given
    if not isinstance(name, str):
        kinds = "Point, Weld, Hinge, Distance, Coupling, JointLock, Implicit and Nonholonomic"
        return ConstraintError(f"{short(repr(given))} is no constraint; {kinds} are.")
    of_joint = any(joint.name == name for joint in model.joints)
    examples = f"JointLock({name!r})" if of_joint else f"Point({name!r}) or Weld({name!r})"
    return ConstraintError(f"{name!r} is a name, not a constraint: say how it is held, such as {examples}.")
