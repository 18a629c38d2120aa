"""Constraints that the user writes: g(kinematics, q) = 0, in NumPy, with derivatives by the compiler."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Integral
from typing import Any

import delassus.numpy as np
from delassus.compiler.derivatives import jacobian, jvp
from delassus.compiler.recorded import Recorded
from delassus.constraints.constraint import NOT_NEGATIVE, Constraint, ConstraintError, JointRow
from delassus.constraints.followed import followed
from delassus.constraints.motions import LinkMotions
from delassus.dynamics.kinematics import frame_in_world
from delassus.dynamics.manifold import coordinate_rates, rates_per_velocity
from delassus.model.model import Model


@dataclass(frozen=True)
class Kinematics:
    """Where the frames of a model are, for functions that users write."""

    model: Model
    q: Any

    def position(self, frame: str) -> Any:
        """The origin (3,) [m] of a frame in the world."""
        return frame_in_world(self.model, self.q, frame)[1]

    def rotation(self, frame: str) -> Any:
        """The rotation (3, 3) that takes vectors of a frame to the world."""
        return frame_in_world(self.model, self.q, frame)[0]


@dataclass(frozen=True)
class Implicit(Constraint):
    """g(kinematics, q) = 0, of `rows` rows, for a function that the user writes in NumPy.

    `g` takes the frames' places (see `Kinematics`: `position(frame)`, `rotation(frame)`), the configuration q (nq,)
    and, if it has a third argument, the time t [s]; it gives an array (rows,). A third argument that has a default is
    left to it, unless it is called t or time. Its Jacobian J and J̇ v are derivatives of what it computes, found by the
    compiler, and two constraints are equal when their functions compute the same.
    The force of a row is what multiplies its row of J; it has the unit of energy per unit of g.

    Where g has a kink (abs, maximum) the derivative is the one of `delassus.compiler`; where it has none (the norm of a
    vector that vanishes), the results of that state are not finite and its status says so.
    """

    g: Any
    _: KW_ONLY
    rows: int
    pattern: tuple[tuple[int, ...], ...] | None = None
    """For each row the velocities that it depends on; found when the constraint meets a model."""
    turning: bool = field(default=False, compare=False, repr=False)
    """Whether the Jacobian changes in time; found likewise."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.rows, Integral) or isinstance(self.rows, bool) or self.rows < 1:
            raise ConstraintError(
                f"the constraint {self.label!r} has rows={self.rows!r}; it is a whole number, how many there are, 1 or "
                "more."
            )
        object.__setattr__(self, "rows", int(self.rows))
        if not callable(self.g):
            raise ConstraintError(f"the constraint {self.label!r} needs a function g(kinematics, q), not {self.g!r}.")
        for parameter in ("acceleration", *NOT_NEGATIVE):
            self.per_row(parameter, self.rows)

    @property
    def label(self) -> str:
        """The name, or the function's."""
        named = getattr(self.g, "__name__", "implicit")
        return self.name or (named if named.isidentifier() else "implicit")

    @property
    def has_reference(self) -> bool:
        """Always: zero."""
        return True

    def bound(self, model: Model) -> Implicit:
        """The same with its function as what it computes for a model, and the velocities that each row depends on."""
        if isinstance(self.g, Recorded):
            return self
        g: Callable[..., Any] = self.g

        def at(q: Any, t: Any) -> Any:
            kinematics = Kinematics(model, q)
            return g(kinematics, q, t) if _takes_time(g) else g(kinematics, q)

        what = f"the constraint {self.label!r}"
        should = (
            f"It is a function g(kinematics, q) or g(kinematics, q, t) that gives an array of shape ({self.rows},), in "
            "NumPy, and can be differentiated."
        )
        recorded = followed(what, at, {"q": (model.nq,), "t": ()}, ((self.rows,),), should)
        made = replace(self, g=recorded, name=self.label)

        def motion(q: Any, v: Any, t: Any) -> Any:
            return made._jacobian(model, q, t), made._drift(model, q, v, t)[1]

        inputs = {"q": (model.nq,), "v": (model.nv,), "t": ()}
        program = followed(what, motion, inputs, ((self.rows, model.nv), (self.rows,)), should).program
        moving = [value > 0 or program.constants[-value] != 0.0 for value in program.results[0]]
        nv = model.nv
        pattern = tuple(tuple(v for v in range(nv) if moving[r * nv + v]) for r in range(self.rows))
        if not all(pattern):
            raise ConstraintError(
                f"row {next(r for r, p in enumerate(pattern) if not p)} of the constraint {self.label!r} does not "
                "depend on the configuration: no force can meet it."
            )
        return replace(made, pattern=pattern, turning=program.depends_on(2, output=0))

    def count(self, model: Model) -> int:
        """As given."""
        return self.rows

    def velocities(self, model: Model) -> tuple[int, ...]:
        """All that a row depends on."""
        return tuple(sorted({v for row in self._pattern for v in row}))

    def joints(self, motions: LinkMotions) -> tuple[JointRow, ...]:
        """The rows of J."""
        J = self._jacobian(motions.model, motions.q, np.asarray(self.time_in(motions, self.turning)))
        return tuple(JointRow(r, v, J[r, v]) for r, row in enumerate(self._pattern) for v in row)

    def velocity_product(self, motions: LinkMotions) -> Any:
        """The second derivative of g along the motion, at v̇ = 0."""
        return self._drift(motions.model, motions.q, motions.v, self._time(motions))[1]

    def reference_velocity(self, motions: LinkMotions) -> Any:
        """-∂g/∂t."""
        still = np.zeros(motions.model.nv)
        return -self._drift(motions.model, motions.q, still, self._time(motions))[0]

    def position_error(self, motions: LinkMotions) -> Any:
        """g."""
        return self.g(motions.q, self._time(motions))[0]

    def _time(self, motions: LinkMotions) -> Any:
        return np.asarray(self.time_in(motions, self.g.program.depends_on(1, output=0)))

    @property
    def _pattern(self) -> tuple[tuple[int, ...], ...]:
        if self.pattern is None:
            raise ConstraintError(f"the constraint {self.label!r} has not met a model: put it into a Mechanism.")
        return self.pattern

    def _jacobian(self, model: Model, q: Any, t: Any) -> Any:
        """∂g/∂q times the rates of the coordinates per velocity: (rows, nv)."""
        return jacobian(lambda q: self.g(q, t)[0])(q) @ rates_per_velocity(model, q)

    def _drift(self, model: Model, q: Any, v: Any, t: Any) -> tuple[Any, Any]:
        """The first and second derivatives (rows,) of g along the motion with constant v, time running on."""
        one = np.ones(())

        def rate(q: Any, t: Any) -> Any:
            return jvp(lambda q, t: self.g(q, t)[0], (q, t), (coordinate_rates(model, q, v), one))[1]

        return jvp(rate, (q, t), (coordinate_rates(model, q, v), one))


def _takes_time(g: Callable[..., Any]) -> bool:
    """Whether a function has a third argument for the time; one with a default is often there for a value of a loop."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    taken = [p for p in inspect.signature(g).parameters.values() if p.kind in positional]
    return len(taken) > 2 and (taken[2].default is inspect.Parameter.empty or taken[2].name in ("t", "time"))
