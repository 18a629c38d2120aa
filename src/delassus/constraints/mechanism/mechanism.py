"""`Mechanism`: a robot and its constraints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy
from numpy.typing import ArrayLike, NDArray

from delassus.common.checks import TIME_STEPS, number_in_range
from delassus.compiler.graph.digest import UNREAD
from delassus.compiler.graph.parameters import ParametricComposite
from delassus.compiler.tracing.trace import trace_of
from delassus.constraints.basis.constraint import Constraint, ConstraintError
from delassus.constraints.kinds.unilateral import Unilateral, UnilateralRow
from delassus.constraints.mechanism.model_loops import constraint_of
from delassus.constraints.mechanism.stability import check_gains
from delassus.dynamics.tree.check import SingularMassMatrix, check_inertias
from delassus.errors import BadArgument, short
from delassus.model.description import HasModel
from delassus.model.model import Model, ParametricModel, TracedModel
from delassus.model.parts import Frame


@dataclass(frozen=True)
class Mechanism(HasModel):
    """A model and its constraints, frozen and compared by content; the argument of the algorithms in `constrained`.

    For a model with parameters it is a `ParametricMechanism`, with the same parameters.

    Attributes:
        model: The robot.
        constraints: The constraints; those that come with the model are first.
        step: The time step [s] of its simulation, if known: gains are then checked for stability.
        model_constraints: Whether to include the model's own constraints; False once they are included.
        unilateral: Unilateral constraints, which are passed among the others. Time steps support them; other algorithms
            raise an error.

    >>> print(dl.Mechanism(dl.load("double_pendulum"), dl.Point("tip")))
    <Mechanism 'double_pendulum': nq 2, nv 2, 3 rows: tip>
    """

    model: Model
    constraints: tuple[Constraint, ...] = ()
    step: float | None = field(default=None, metadata=UNREAD)
    model_constraints: bool = True
    unilateral: tuple[Unilateral, ...] = field(default=(), init=False)

    if TYPE_CHECKING:  # constructor arguments, which are more general than the fields

        def __init__(
            self,
            model: Model | ParametricModel,
            constraints: Constraint | Iterable[Constraint] = (),
            step: float | None = None,
            model_constraints: bool = True,
        ) -> None: ...

    def __new__(cls, model: Any = None, *_: Any, **__: Any) -> Mechanism:
        """Create a mechanism, with parameters if its model has some."""
        return object.__new__(ParametricMechanism if isinstance(model, ParametricModel) else cls)

    def __post_init__(self) -> None:
        if not isinstance(self.model, Model):
            raise BadArgument(f"a mechanism needs a Model; got {type(self.model).__name__}.", code="wrong-type")
        user_constraints = _several(self.constraints)
        for constraint in user_constraints:
            if not isinstance(constraint, Constraint):
                raise _no_constraint(self.model, constraint)
        model_constraints = map(constraint_of, self.model.constraints if self.model_constraints else ())
        constraints = [self.bind(c) for c in (*model_constraints, *user_constraints)]
        object.__setattr__(self, "unilateral", tuple(c for c in constraints if isinstance(c, Unilateral)))
        object.__setattr__(self, "constraints", tuple(c for c in constraints if not isinstance(c, Unilateral)))
        object.__setattr__(self, "model_constraints", False)
        if self.step is not None:
            number_in_range("step", self.step, TIME_STEPS)
        for constraint in (*self.constraints, *self.unilateral):
            constraint.links(self.model), constraint.velocities(self.model)
            if self.step is not None:
                check_gains(constraint, self.model, self.step)

    def __repr__(self) -> str:
        size = f"nq {self.nq}, nv {self.nv}, {self.m} rows"
        return f"<{type(self).__name__} {self.model.name!r}: {size}: {', '.join(self.names)}>"

    @property
    def __kernel_model__(self) -> Any:
        """The model for kernels of a `Model`."""
        return self.model

    def bind(self, constraint: Constraint) -> Constraint:
        """Bind a constraint to the model."""
        return constraint.bind(self.model)

    @property
    def plain(self) -> Mechanism:
        """A mechanism without run-time parameters: this one, or that with the model's default parameters."""
        if not isinstance(self.model, TracedModel):
            return self
        return _nominal(self.model.origin, (*self.constraints, *self.unilateral))

    @cached_property
    def m(self) -> int:
        """Number of rows of all constraints."""
        return sum(constraint.count(self.model) for constraint in self.constraints)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """A name for each constraint; further constraints with the same name get the suffixes _2, _3, …."""
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
        # Not cached: a read-only view cannot be pickled.
        return MappingProxyType(dict(zip(self.names, self.row_ranges(), strict=True)))

    @cached_property
    def one_sided(self) -> tuple[UnilateralRow, ...]:
        """The rows of the unilateral constraints, one constraint each."""
        return tuple(row for constraint in self.unilateral for row in constraint.split(self.model))

    def row_ranges(self) -> Iterator[slice]:
        """The rows of each constraint."""
        start = 0
        for constraint in self.constraints:
            stop = start + constraint.count(self.model)
            yield slice(start, stop)
            start = stop


@dataclass(frozen=True, repr=False)
class ParametricMechanism(Mechanism, ParametricComposite):
    """The mechanism of a model with parameters, one set for each state of a batch.

    Attributes:
        model: The robot with its default parameters.
        parametric: The model with its parameters.
    """

    parametric: ParametricModel | None = None

    def __post_init__(self) -> None:
        if isinstance(self.model, ParametricModel):
            object.__setattr__(self, "parametric", self.model)
            object.__setattr__(self, "model", self.model.model)
        super().__post_init__()

    @property
    def parametric_part(self) -> ParametricModel:
        """The part with parameters: the model."""
        if self.parametric is None:
            raise BadArgument(
                "a mechanism with parameters needs a model with parameters; create one with model.parametric(…).",
                code="not-parametric",
            )
        return self.parametric

    @property
    def __kernel_model__(self) -> ParametricModel:
        """The model for kernels of a `Model`, with the same parameters."""
        return self.parametric_part

    def bind(self, constraint: Constraint) -> Constraint:
        """Bind a constraint to the model, for any parameters."""
        return constraint.bind_parametric(self.parametric_part)

    @property
    def plain(self) -> Mechanism:
        """The mechanism with the model's default parameters."""
        return _nominal(self.parametric_part, (*self.constraints, *self.unilateral))

    def pack(self, values: Mapping[str, ArrayLike]) -> NDArray[numpy.float64]:
        """Parameters (…, nparameters) from arrays by name; those not given keep their defaults."""
        return self.parametric_part.pack(values)

    def with_parameters(self, parameters: Any) -> Mechanism:
        """The mechanism with these parameters (nparameters,); plain if these are constants."""
        plain = trace_of(parameters) is None
        values = tuple(numpy.asarray(parameters, float).tolist()) if plain else parameters
        return _with_parameters(
            self.parametric_part.with_parameters(parameters), (*self.constraints, *self.unilateral), values
        )


def refuse_unilateral(mechanism: Mechanism, what: str) -> None:
    """Raise an error if a mechanism has unilateral constraints, for algorithms without an active set."""
    if mechanism.unilateral:
        names = ", ".join(repr(constraint.label) for constraint in mechanism.unilateral[:5])
        raise ConstraintError(
            f"{what} needs bilateral constraints, and the mechanism has unilateral ones ({names}): whether "
            "they act is decided in a time step. Use contact_dynamics, compliant_step or Simulation.",
            code="unilateral-constraint",
        )


def _nominal(parametric: ParametricModel, constraints: tuple[Constraint, ...]) -> Mechanism:
    """The mechanism with a model's default parameters, or those of its sample, if joints get all inertia at run
    time.
    """
    values = tuple(parametric.parameters().tolist())
    try:
        check_inertias(parametric.model)
    except SingularMassMatrix:
        return _with_parameters(parametric.sample, constraints, values)
    return _with_parameters(parametric.model, constraints, values)


def _with_parameters(model: Model, constraints: tuple[Constraint, ...], parameters: Any) -> Mechanism:
    """A mechanism whose constraints depend on the parameters (nparameters,) of their model."""
    return Mechanism(model, tuple(c.with_parameters(parameters) for c in constraints), model_constraints=False)


def _several(constraints: Any) -> tuple[Any, ...]:
    """A single constraint, or those of a list, as a tuple."""
    if isinstance(constraints, Constraint | Frame | str):
        return (constraints,)
    is_single = isinstance(constraints, bytes | Mapping) or getattr(constraints, "ndim", 1) == 0
    if is_single or not isinstance(constraints, Iterable):
        raise ConstraintError(
            f"the constraints are {short(repr(constraints))}; they must be one constraint or a list of them.",
            code="wrong-type",
        )
    return tuple(constraints)


def _no_constraint(model: Model, value: Any) -> ConstraintError:
    """The error for an object that is not a constraint, with a suggestion."""
    name = value.name if isinstance(value, Frame) else value
    if not isinstance(name, str):
        kinds = "Point, Weld, Hinge, Distance, Coupling, JointLock, Implicit and Nonholonomic"
        return ConstraintError(f"{short(repr(value))} is no constraint; {kinds} are.", code="wrong-type")
    of_joint = any(joint.name == name for joint in model.joints)
    examples = f"JointLock({name!r})" if of_joint else f"Point({name!r}) or Weld({name!r})"
    return ConstraintError(
        f"{name!r} is a name, not a constraint: say how it is held, such as {examples}.", code="wrong-type"
    )


Robot: TypeAlias = Model | ParametricModel | Mechanism
"""Argument of algorithms with constraints: a mechanism, or a model with the constraints of its file."""
