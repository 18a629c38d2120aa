"""Couplings of joints: gears, racks, fingers of a gripper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.common.options import accept_groups
from delassus.common.types import Traced
from delassus.constraints.basis.constraint import ConstraintError, JointRow
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.basis.options import RowResponse
from delassus.constraints.basis.polynomial import PolynomialRow
from delassus.model.model import Model


@accept_groups("joint joint2 * coefficients reference reference2 name", response=RowResponse())
@dataclass(frozen=True)
class Coupling(PolynomialRow):
    """A joint coordinate is a polynomial of another: y - y₀ = φ(x - x₀), φ(x) = Σ cₖ xᵏ. One row.

    Its velocity is ẏ - φ'(x) ẋ, its force the torque [N·m] or force [N] on `joint`; that on `joint2` is -φ'(x) times
    it. Without `joint2`, the joint is fixed at y₀ + c₀. Unlike for mimic joints of a model file, the force is computed,
    and the row can be masked.

    Attributes:
        joint: The dependent joint y, with one coordinate.
        joint2: The leading joint x, with one coordinate.
        coefficients: c₀, c₁, … [rad or m per power of rad or m].
        reference: y₀ [rad, m].
        reference2: x₀ [rad, m].

    >>> gear = dl.Coupling("lower_joint", "upper_joint", coefficients=(0.0, -2.0))
    >>> dl.Mechanism(dl.load("double_pendulum"), gear).m
    1
    """

    joint: str
    joint2: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_polynomial("joint")

    @property
    def ends(self) -> tuple[str, ...]:
        """The names of the coupled joints."""
        return (self.joint,) if self.joint2 is None else (self.joint, self.joint2)

    def velocities(self, model: Model) -> tuple[int, ...]:
        """The indices of the velocities of both joints."""
        starts = [model.v_starts[self._index(model, name)] for name in self.ends]
        if len(set(starts)) < len(starts):
            raise ConstraintError(
                f"the joints {self.joint!r} and {self.joint2!r} share a coordinate already (mimic joints), so the "
                f"coupling {self.label!r} has no effect; omit it, or load the model with mimic='ignore'.",
                code="not-supported",
            )
        return tuple(starts)

    def joints(self, motions: LinkMotions) -> tuple[JointRow, ...]:
        """The coefficients 1 and -φ'(x)."""
        starts, ratios = self.velocities(motions.model), [self._ratio(motions.model, name) for name in self.ends]
        rows = [JointRow(0, starts[0], ratios[0])]
        if self.joint2 is not None:
            rows.append(JointRow(0, starts[1], -ratios[1] * self._polynomial(motions, 1)))
        return tuple(rows)

    def velocity_product(self, motions: LinkMotions) -> Traced:
        """-φ''(x) ẋ²."""
        if self.joint2 is None:
            return np.zeros(1)
        model = motions.model
        rate = self._ratio(model, self.joint2) * motions.v[self.velocities(model)[1]]
        return np.stack([-self._polynomial(motions, 2) * rate * rate])

    def position_error(self, motions: LinkMotions) -> Traced:
        """y - y₀ - φ(x - x₀)."""
        return np.stack([self._coordinate(motions, self.joint) - self.reference - self._polynomial(motions, 0)])

    def _index(self, model: Model, name: str) -> int:
        index = model.joint_index(name)
        kind = model.joints[index].kind
        if (kind.nq, kind.nv) != (1, 1):
            raise ConstraintError(
                f"the coupling {self.label!r} needs joints of one coordinate; {name!r} is {kind.label}, of {kind.nv}.",
                code="not-supported",
            )
        return index

    def _ratio(self, model: Model, name: str) -> float:
        mimic = model.joint(name).mimic
        return mimic.ratio if mimic else 1.0

    def _coordinate(self, motions: LinkMotions, name: str) -> Any:
        model = motions.model
        mimic, coordinate = model.joint(name).mimic, motions.q[model.q_starts[model.joint_index(name)]]
        return mimic.ratio * coordinate + mimic.offset if mimic else coordinate

    def _polynomial(self, motions: LinkMotions, order: int) -> Any:
        """φ or a derivative of it."""
        return self.polynomial(None if self.joint2 is None else self._coordinate(motions, self.joint2), order)
