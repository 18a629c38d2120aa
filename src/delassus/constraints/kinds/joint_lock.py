"""Locked or driven joints: a brake, or a prescribed motion."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.constraints.basis.constraint import (
    Constraint,
    ConstraintError,
    JointRow,
    frozen_numbers,
    parse_rows,
    row_indices,
)
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.basis.reference import MovingPoint, MovingReference, is_moving
from delassus.model.model import Model
from delassus.model.parts import Joint


@dataclass(frozen=True)
class JointLock(Constraint):
    """The velocities of a joint have the derivative a*: one row each, whose force is a torque [N·m] or a force [N].

    Unlike `Model.lock`, it can be masked at run time and its force is computed. `rows=(0,)` selects velocities of a
    joint that has several. `position` [rad, m] is the reference of the joint's coordinates, for a `position_gain`: one
    value per row, or a function of time that returns an array. A joint follows such a function, including its
    acceleration.

    >>> dl.Mechanism(dl.load("double_pendulum"), dl.JointLock("upper_joint")).m
    1
    """

    joint: str
    _: KW_ONLY
    rows: Any = None
    position: Any = None

    def __post_init__(self) -> None:
        if self.rows is not None:
            object.__setattr__(self, "rows", parse_rows(self.label, self.rows))
        super().__post_init__()
        if is_moving(self.position):
            if not isinstance(self.position, MovingReference):
                shape = (1 if self.rows is None else len(self.rows),)
                object.__setattr__(self, "position", MovingReference.of(self.label, "position", self.position, shape))
        elif self.position is not None:
            object.__setattr__(self, "position", frozen_numbers(f"position of {self.label!r}", self.position))
        elif np.any(self.position_gain):
            raise ConstraintError(
                f"the constraint {self.label!r} has a position_gain but no position; pass position=…, "
                "the joint's coordinate.",
                code="missing-argument",
            )

    @property
    def label(self) -> str:
        """The name, or that of the joint."""
        return self.name or self.joint

    def count(self, model: Model) -> int:
        """The number of constrained velocities."""
        return len(self._selected_rows(model))

    def bind(self, model: Model) -> Constraint:
        """Bind to a model, and check that the position fits the joint."""
        if isinstance(self.position, tuple):
            self.per_row("position", self.count(model))
        return super().bind(model)

    @property
    def has_reference(self) -> bool:
        """Whether a position is given."""
        return self.position is not None

    def velocities(self, model: Model) -> tuple[int, ...]:
        """The indices of the constrained velocities."""
        if isinstance(self.position, MovingReference) and self.rows is None and self.count(model) > 1:
            raise ConstraintError(
                f"the constraint {self.label!r} follows a function of time and its joint has {self.count(model)} "
                "velocities; pass rows=… to select those that the function describes.",
                code="missing-argument",
            )
        start = model.v_starts[model.joint_index(self.joint)]
        if self._ratio(model) == 0.0:
            raise ConstraintError(
                f"the joint {self.joint!r} mimics another with the ratio 0 and cannot move; omit its lock.",
                code="immovable",
            )
        return tuple(start + row for row in self._selected_rows(model))

    def joints(self, motions: LinkMotions) -> tuple[JointRow, ...]:
        """One velocity for each row."""
        ratio = self._ratio(motions.model)
        return tuple(JointRow(row, v, ratio) for row, v in enumerate(self.velocities(motions.model)))

    def _ratio(self, model: Model) -> float:
        mimic = self._joint(model).mimic
        return mimic.ratio if mimic else 1.0

    def position_error(self, motions: LinkMotions) -> Traced:
        """The coordinate minus the reference."""
        model = motions.model
        joint, start = self._joint(model), model.q_starts[model.joint_index(self.joint)]
        if any(not motion.is_euclidean for motion, _, _ in joint.kind.elements):
            raise ConstraintError(
                f"the joint {self.joint!r} is {joint.kind.label}: its velocities are not the rates of its coordinates, "
                "so a position_gain has no meaning there. Use a Weld on the frame that it carries.",
                code="not-supported",
            )
        ratio, offset = (joint.mimic.ratio, joint.mimic.offset) if joint.mimic else (1.0, 0.0)
        coordinates = np.stack([ratio * motions.q[start + row] + offset for row in self._selected_rows(model)])
        if isinstance(self.position, MovingReference):
            return coordinates - self._moving(motions).position
        return coordinates - np.array(self.per_row("position", self.count(model)))

    def velocity_product(self, motions: LinkMotions) -> Traced:
        """Minus the acceleration of a moving reference."""
        if not isinstance(self.position, MovingReference):
            return np.zeros(self.count(motions.model))
        return -self._moving(motions).acceleration

    def reference_velocity(self, motions: LinkMotions) -> Traced:
        """The velocity of a moving reference."""
        return self._moving(motions).velocity if isinstance(self.position, MovingReference) else None

    def _moving(self, motions: LinkMotions) -> MovingPoint:
        result: MovingPoint = self.position.point(self.time_in(motions, self.position.moves))
        return result

    def _joint(self, model: Model) -> Joint:
        return model.joint(self.joint)

    def _selected_rows(self, model: Model) -> tuple[int, ...]:
        names = tuple(str(k) for k in range(self._joint(model).kind.nv))
        return row_indices(self.label, range(len(names)) if self.rows is None else self.rows, names)
