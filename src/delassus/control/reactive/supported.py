"""A robot with supports and limits: the part of a controller's QP that does not depend on tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy

from delassus.constrained.rows.jacobian import constraint_bias
from delassus.constraints.basis.constraint import ConstraintError
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.control.inverse.actuated import RANK
from delassus.control.reactive.ranges import limited_joints, torque_limits
from delassus.control.reactive.supports import ReactiveError, Support
from delassus.model.description import HasModel
from delassus.model.model import Model


class SupportedRobot(HasModel):
    """The unknowns and rows of the QP that do not depend on tasks; attributes as of `ReactiveControl`."""

    actuated: Any
    supports: tuple[Support, ...]
    cone: str
    torque_limits: bool
    joint_limits: bool
    horizon: float

    @property
    def model(self) -> Any:  # type: ignore[override]
        """The model of the robot."""
        return self.actuated.model

    @property
    def plain(self) -> Model:
        """The robot without parameters."""
        model: Model = self.actuated.mechanism.plain.model
        return model

    # --- sizes ----------------------------------------------------------------------------------------------------

    @property
    def nu(self) -> int:
        """Number of actuators."""
        count: int = self.actuated.nu
        return count

    @cached_property
    def velocity_names(self) -> tuple[str, ...]:
        """A name for each velocity: that of its joint, with an index if it has several."""
        names = [f"velocity {k}" for k in range(self.nv)]
        for joint, start in zip(self.plain.joints, self.plain.v_starts, strict=True):
            for k in range(joint.kind.nv if joint.mimic is None else 0):
                names[start + k] = joint.name if joint.kind.nv == 1 else f"{joint.name} {k}"
        return tuple(names)

    @property
    def force_slices(self) -> Mapping[str, slice]:
        """The slices of supports and constraints in f."""
        slices, at = {}, 0
        for support in self.supports:
            slices[support.frame] = slice(at, at + support.rows)
            at += support.rows
        for name, rows in self.actuated.mechanism.slices.items():
            slices[name] = slice(at + rows.start, at + rows.stop)
        return MappingProxyType(slices)

    @property
    def nf(self) -> int:
        """Number of forces."""
        count: int = sum(support.rows for support in self.supports) + self.actuated.m
        return count

    @property
    def n(self) -> int:
        """Number of unknowns, accelerations and forces."""
        return self.nv + self.nf

    @property
    def equalities(self) -> int:
        """Rows of the equation of motion without actuators, and those of supports and constraints."""
        return self.nv - self.actuated.rank + self.nf

    @property
    def rows(self) -> int:
        """Rows with bounds."""
        return len(self.row_names)

    @property
    def row_names(self) -> list[str]:
        """Names of the rows with bounds, in the order of `rows_of`."""
        names = [name for support in self.supports for name, *_ in support.bounds(self.cone)]
        names += [f"{self.actuated.names[k]} torque" for k in self.limited_torques]
        return names + [f"{name} range" for name, _, _ in self.limited_joints]

    @property
    def cone_rows(self) -> int:
        """Rows of friction cones."""
        return 3 * len(self.supports) if self.cone == "second order" else 0

    @property
    def multipliers(self) -> int:
        """Number of all rows."""
        return self.equalities + self.rows + self.cone_rows

    @property
    def sizes(self) -> dict[str, int]:
        """Rows of each support, and the number of all forces "nf" and torques "nu"."""
        return {support.frame: support.rows for support in self.supports} | {"nf": self.nf, "nu": self.nu}

    @cached_property
    def moves(self) -> bool:
        """Whether a constraint moves in time: the reference then has a "time" [s]."""
        return moves_in_time(self.actuated.mechanism.plain)

    # --- actuators and limits -------------------------------------------------------------------------------------

    @cached_property
    def inverse_actuation(self) -> tuple[tuple[float, ...], ...]:
        """B⁺ (nu, nv): from generalized forces to forces of actuators."""
        inverse = numpy.linalg.pinv(self.actuated.B, rcond=RANK)
        inverse[numpy.abs(inverse) < 1e-15 * numpy.abs(inverse).max(initial=0.0)] = 0.0
        return tuple(map(tuple, inverse.tolist()))

    @cached_property
    def torque_limit(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """(2, nu) lower and upper limits of the actuators' forces, infinite if they are ignored."""
        if not self.torque_limits:
            return (-math.inf,) * self.nu, (math.inf,) * self.nu
        lower, upper = torque_limits(self.actuated)
        for name, low, high in zip(self.actuated.names, lower, upper, strict=True):
            if low > high:
                raise ReactiveError(
                    f"the force of {name!r} has the lower limit {low:g} and the upper limit {high:g}; the lower "
                    "one must not be larger.",
                    code="empty-interval",
                )
        return tuple(lower.tolist()), tuple(upper.tolist())

    @cached_property
    def limited_torques(self) -> tuple[int, ...]:
        """The actuators that have limits."""
        return tuple(k for k, ends in enumerate(zip(*self.torque_limit, strict=True)) if any(map(math.isfinite, ends)))

    @cached_property
    def limited_joints(self) -> tuple[tuple[str, int, int], ...]:
        """Name, coordinate and velocity of the joints that have limits."""
        return tuple(limited_joints(self.plain)) if self.joint_limits else ()


def moves_in_time(mechanism: Mechanism) -> bool:
    """Whether a constraint moves in time: it then raises an error if it is evaluated without a time."""
    try:
        if mechanism.m:
            constraint_bias.python(mechanism, mechanism.model.neutral(), numpy.zeros(mechanism.nv))
    except ConstraintError:
        return True
    return False
