"""The base of tasks: squared errors of accelerations, forces or torques that are linear in x = (a, f).

A task names the quantities that it follows (positions, velocities, …). These are parts of the controller's reference,
inputs at run time, as is a factor of its weight. A position is followed by an acceleration

    a* + stiffness (x* - x) + damping (v* - v)
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy

from delassus.control.operational.task import Task as Quantity
from delassus.control.reactive.situation import Situation
from delassus.control.reactive.supports import ReactiveError
from delassus.errors import short
from delassus.model.model import Model

Weights: TypeAlias = "float | tuple[float, ...] | tuple[tuple[float, ...], ...]"
Fields: TypeAlias = "dict[str, Any]"
Sizes: TypeAlias = "dict[str, int]"
Weighted: TypeAlias = "list[tuple[str, Weights, int]]"


class Term(NamedTuple):
    """½ ‖J_a a + J_f f - target‖² with a weight: one value, one for each row, or a matrix."""

    on_a: Any
    on_f: Any
    target: Any
    weight: Any


@dataclass(frozen=True)
class Task:
    """Base class of tasks.

    Attributes:
        name: Name in the reference.
        weight: Weight of its squared errors.
        stiffness: [1/s²].
        damping: [1/s]; by default critical, 2 √stiffness.
    """

    name: str = ""
    weight: Any = 1.0
    stiffness: float = 0.0
    damping: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise ReactiveError(
                f"the name of a task is {short(repr(self.name))}; it must be a string.", code="wrong-type"
            )
        object.__setattr__(self, "name", self.name or self._default_name)
        object.__setattr__(self, "weight", frozen_weight(self.name, self.weight))
        damping = self.damping
        if not 0.0 <= _number(self.stiffness) < math.inf or not (damping is None or 0.0 <= _number(damping) < math.inf):
            raise ReactiveError(
                f"the task {self.name!r} has stiffness {self.stiffness!r} and damping {damping!r}; both must be finite "
                "and not negative.",
                code="out-of-range",
            )
        object.__setattr__(self, "damping", 2.0 * math.sqrt(self.stiffness) if damping is None else float(damping))

    @property
    def _default_name(self) -> str:
        return type(self).__name__.removeprefix("Follow").lower()

    def rest(self, model: Model, q: Any, sizes: Sizes) -> Fields:
        """Its parts of the reference, with values that keep the robot at rest at a configuration q (nq,)."""
        raise NotImplementedError

    def terms(self, s: Situation) -> list[Term]:
        """The weighted squares that the task adds to the cost."""
        raise NotImplementedError

    def weights(self, model: Model, sizes: Sizes) -> Weighted:
        """Its weights: name, value, and number of rows."""
        raise NotImplementedError


@dataclass(frozen=True)
class Follow(Task):
    """A task that follows a quantity of the robot with a Jacobian, a bias and an error."""

    def quantity(self, model: Model) -> Quantity:
        """The quantity of the robot that the task follows."""
        raise NotImplementedError

    def numbers(self, model: Model) -> list[int]:
        """The indices of its rows in the references of velocity and acceleration."""
        return list(range(self.quantity(model).count(model)))

    def target(self, s: Situation) -> Any:
        """The target of the quantity's error; None for a quantity without position."""
        return None

    @property
    def _rates(self) -> tuple[str, str]:
        return "velocity", "acceleration"

    def terms(self, s: Situation) -> list[Term]:
        """One row for each of the quantity's."""
        model, (velocity, acceleration) = s.control.model, self._rates
        quantity, indices, target = self.quantity(model), self.numbers(model), self.target(s)
        J = quantity.jacobian(model, s.q)
        acceleration_target = s.reference_part(f"{self.name}.{acceleration}")[indices]
        acceleration_target = acceleration_target + float(self.damping or 0.0) * (
            s.reference_part(f"{self.name}.{velocity}")[indices] - J @ s.v
        )
        if target is not None:
            acceleration_target = acceleration_target - self.stiffness * quantity.error(model, s.q, target)
        return [Term(J, None, acceleration_target - quantity.bias(model, s.q, s.v), self.weight)]

    def weights(self, model: Model, sizes: Sizes) -> Weighted:
        """One weight for all rows."""
        return [(self.name, self.weight, self.quantity(model).count(model))]


def frozen_weight(name: str, weight: Any) -> Weights:
    """A weight that can be hashed: one value, a tuple, or rows of a symmetric matrix, all nonnegative."""
    try:
        array = numpy.asarray(weight, float)
    except (TypeError, ValueError, OverflowError):
        array = numpy.array(numpy.nan)
    if array.ndim > 2 or not numpy.isfinite(array).all():
        raise ReactiveError(
            f"the weight of {name!r} is {weight!r}; it must be one finite number, several, or a matrix.",
            code="not-a-number",
        )
    if array.ndim == 2:
        if array.shape[0] != array.shape[1] or not numpy.allclose(array, array.T):
            raise ReactiveError(
                f"the weight of {name!r} has shape {array.shape}; a matrix must be symmetric.", code="not-symmetric"
            )
        least = float(numpy.linalg.eigvalsh(array).min())
        if least < -1e-12 * numpy.abs(array).max():
            raise ReactiveError(
                f"the weight of {name!r} has the eigenvalue {least:.3g}; none must be negative.",
                code="not-semidefinite",
            )
        return tuple(map(tuple, array.tolist()))
    if (array < 0.0).any():
        raise ReactiveError(f"the weight of {name!r} is {weight!r}; it must be not negative.", code="out-of-range")
    return float(array) if array.ndim == 0 else tuple(array.tolist())


def _number(value: Any) -> float:
    """A float; NaN for anything else, or if it overflows."""
    try:
        return float(value) if isinstance(value, numbers.Real) else math.nan
    except OverflowError:
        return math.nan
