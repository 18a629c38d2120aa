"""Constraints defined by NumPy functions of the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Self

import delassus.numpy as np
from delassus.common.checks import check_integer
from delassus.common.types import Traced
from delassus.compiler.differentiation.recorded_function import RecordedFunction
from delassus.compiler.graph.program import Program
from delassus.constraints.basis.constraint import NOT_NEGATIVE, Constraint, ConstraintError, JointRow
from delassus.constraints.basis.function_tracing import trace_function
from delassus.constraints.basis.motions import LinkMotions
from delassus.dynamics.kinematics.kinematics import frame_in_world
from delassus.model.model import Model, ParametricModel, TracedModel


@dataclass(frozen=True)
class Kinematics:
    """Placements of a model's frames, as arguments of user functions.

    >>> height = lambda kinematics, q: kinematics.position("tip")[2:] + 0.8      # a `Kinematics` is its first argument
    >>> dl.Mechanism(dl.load("double_pendulum"), dl.Implicit(height, rows=1)).m
    1
    """

    model: Model
    q: Any

    def position(self, frame: str) -> Traced:
        """The origin (3,) [m] of a frame in the world."""
        return frame_in_world(self.model, self.q, frame)[1]

    def rotation(self, frame: str) -> Traced:
        """The rotation (3, 3) from a frame to the world."""
        return frame_in_world(self.model, self.q, frame)[0]


@dataclass(frozen=True)
class ParametricFunction:
    """A traced function that also depends on the parameters (nparameters,) of its model: constants, or traced."""

    function: RecordedFunction
    parameters: Any

    @property
    def program(self) -> Program:
        """The traced function; parameters are its last input."""
        return self.function.program

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """The function's results, as a tuple."""
        return self.function(*arguments, np.asarray(self.parameters))


@dataclass(frozen=True)
class FunctionConstraint(Constraint):
    """A user function g that must be zero, of `rows` rows; its rows on joints are derivatives of g.

    Attributes:
        g: The function; its program after binding to a model.
        rows: The number of rows.
        pattern: For each row the velocities that it depends on; determined by `bind`.
        turning: Whether the rows change in time; determined by `bind`.
    """

    g: Any
    _: KW_ONLY
    rows: int
    pattern: tuple[tuple[int, ...], ...] | None = None
    turning: bool = field(default=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer(f"rows of {self.label!r}", self.rows)
        object.__setattr__(self, "rows", int(self.rows))
        if not callable(self.g):
            raise ConstraintError(
                f"the constraint {self.label!r} needs a function {self.form}, not {self.g!r}.", code="wrong-type"
            )
        for parameter in ("acceleration", *NOT_NEGATIVE):
            self.per_row(parameter, self.rows)

    @property
    def form(self) -> str:
        """The signature of the function, for messages."""
        raise TypeError(f"{type(self).__name__} does not say what its function takes.")

    def inputs(self, model: Model) -> dict[str, tuple[int, ...]]:
        """The shapes of the arguments of g by name; the time t is the last."""
        raise TypeError(f"{type(self).__name__} does not say what its function depends on.")

    def call_function(self, model: Model, *arrays: Any) -> Any:
        """Call the user function (rows,) for a model and these arrays."""
        raise TypeError(f"{type(self).__name__} does not call its function.")

    def jacobian(self, model: Model, q: Any, t: Any) -> Any:
        """J (rows, nv)."""
        raise TypeError(f"{type(self).__name__} has no rows.")

    def check(self, model: Model, extra: dict[str, tuple[int, ...]]) -> None:
        """Raise an error unless the program has the required properties; `extra` are the inputs of a model with
        parameters.
        """

    @property
    def label(self) -> str:
        """The name, or that of the function."""
        name = getattr(self.g, "__name__", self.fallback)
        return self.name or (name if name.isidentifier() else self.fallback)

    @property
    def fallback(self) -> str:
        """The name if neither the constraint nor its function has one."""
        return type(self).__name__.lower()

    def bind(self, model: Model) -> Self:
        """Trace the function for a model, and find the velocities that each row depends on."""
        if isinstance(model, TracedModel):
            return self.bind_parametric(model.origin).with_parameters(model.parameters)
        return self._record_function(model, lambda: model, {})

    def bind_parametric(self, parametric: ParametricModel) -> Self:
        """Bind to a model with parameters, which are further inputs of its function."""
        return self._record_function(
            parametric.model, parametric.with_parameters, {"parameters": (parametric.nparameters,)}
        )

    def with_parameters(self, *parameters: Any) -> Self:
        """The constraint with these parameters (nparameters,) of its model."""
        if not parameters:
            return self
        return replace(
            self,
            g=ParametricFunction(self.g.function if isinstance(self.g, ParametricFunction) else self.g, *parameters),
        )

    def _record_function(self, model: Model, model_of: Callable[..., Model], extra: dict[str, tuple[int, ...]]) -> Self:
        """Trace the function for the model that `model_of` creates from extra inputs."""
        if isinstance(self.g, (RecordedFunction, ParametricFunction)):
            return self
        inputs = self.inputs(model)

        def function(*arrays: Any) -> Any:
            return self.call_function(model_of(*arrays[len(inputs) :]), *arrays[: len(inputs)])

        traced = replace(self, g=self.trace_function(function, inputs | extra, (self.rows,)), name=self.label)
        traced.check(model, extra)

        def rows(q: Any, t: Any, *parameters: Any) -> Any:
            return traced.with_parameters(*parameters).jacobian(model, q, t)

        program = traced.trace_function(rows, {"q": (model.nq,), "t": ()} | extra, (self.rows, model.nv)).program
        moving = [value > 0 or program.constants[-value] != 0.0 for value in program.results[0]]
        nv = model.nv
        pattern = tuple(tuple(v for v in range(nv) if moving[r * nv + v]) for r in range(self.rows))
        if not all(pattern):
            raise ConstraintError(
                f"row {next(r for r, p in enumerate(pattern) if not p)} of the constraint {self.label!r} does not "
                f"depend on the {self.dependency}, so no force can satisfy it.",
                code="immovable",
            )
        return replace(traced, pattern=pattern, turning=program.depends_on(1, output=0))

    @property
    def dependency(self) -> str:
        """What every row must depend on."""
        return "configuration"

    def trace_function(
        self, function: Callable[..., Any], inputs: dict[str, tuple[int, ...]], *shapes: Any
    ) -> RecordedFunction:
        """Trace a function of arrays; failures raise an error of this constraint."""
        should = (
            f"It is a function {self.form} that gives an array of shape ({self.rows},), in NumPy, and can be "
            "differentiated."
        )
        return trace_function(f"the constraint {self.label!r}", function, inputs, shapes, should)

    def count(self, model: Model) -> int:
        """The number of rows declared by the user."""
        return self.rows

    def velocities(self, model: Model) -> tuple[int, ...]:
        """All velocities that a row depends on."""
        return tuple(sorted({v for row in self._pattern for v in row}))

    def joints(self, motions: LinkMotions) -> tuple[JointRow, ...]:
        """The rows of J."""
        J = self.jacobian(motions.model, motions.q, np.asarray(self.time_in(motions, self.turning)))
        return tuple(JointRow(r, v, J[r, v]) for r, row in enumerate(self._pattern) for v in row)

    def time_of(self, motions: LinkMotions) -> Any:
        """The time [s], required if g depends on it."""
        program = self.g.program
        at = [operand.name for operand in program.inputs].index("t")
        return np.asarray(self.time_in(motions, program.depends_on(at, output=0)))

    @property
    def _pattern(self) -> tuple[tuple[int, ...], ...]:
        if self.pattern is None:
            raise ConstraintError(
                f"the constraint {self.label!r} is not bound to a model; pass it to a Mechanism.",
                code="missing-argument",
            )
        return self.pattern
