"""A point fixed in the world or to another frame: a foot that does not slip, a ball joint that closes a loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.common.options import accept_groups
from delassus.common.types import Traced
from delassus.constraints.basis.constraint import BodyRows, ConstraintError, frozen_numbers
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.basis.options import FramePlacements, RowResponse
from delassus.constraints.basis.reference import MovingPoint, MovingReference, is_moving
from delassus.constraints.basis.row_axes import AxisConstraint
from delassus.model.parts import WORLD
from delassus.spatial.rotations import skew


@accept_groups("frame frame2 * rows axes position name", response=RowResponse(), placements=FramePlacements())
@dataclass(frozen=True, kw_only=True)
class Point(AxisConstraint):
    """The origins of two frames, or of a frame and a point of the world, have the relative acceleration a*: 3 rows.

    The rows x, y, z are along the first frame's axes. Its velocity is Rᵀ (ṗ - ṗ₂), its acceleration Rᵀ (p̈ - p̈₂) with
    the classical accelerations of the points. The force [N] acts at the point on the body of the first frame, and with
    the opposite sign on that of the second. `rows="xz"` or `rows=(0, 2)` selects rows. With `axes="world"` all of this
    is along the world's axes, without Rᵀ: `rows="z"` is a point at a fixed height, free to slide.

    Relative to the world, `position` is the reference of the point: (3,) [m], or a function of time that returns it. A
    `position_gain` needs one. The error is Rᵀ (p - p₂).

    >>> dl.Mechanism(dl.load("double_pendulum"), dl.Point("tip", rows="xz")).m
    2
    """

    rows: Any = "xyz"
    position: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.position is None:
            if np.any(self.position_gain) and self.frame2 is None:
                raise ConstraintError(
                    f"the constraint {self.label!r} has a position_gain but no position; pass "
                    "position=(x, y, z), the reference in the world.",
                    code="missing-argument",
                )
            return
        if self.frame2 is not None:
            raise ConstraintError(
                f"the constraint {self.label!r} is between two frames and also has a position in the world; omit "
                "position or frame2.",
                code="conflicting-arguments",
            )
        if is_moving(self.position):
            if not isinstance(self.position, MovingReference):
                object.__setattr__(self, "position", MovingReference.of(self.label, "position", self.position, (3,)))
            return
        coordinates = frozen_numbers(f"position of {self.label!r}", self.position, "a point (x, y, z)")
        if np.shape(coordinates) != (3,):
            raise ConstraintError(
                f"position of {self.label!r} is {self.position!r}; it must be a point (x, y, z).", code="wrong-shape"
            )
        object.__setattr__(self, "position", coordinates)

    @property
    def most(self) -> int:
        """The largest number of rows, 3."""
        return 3

    @property
    def has_reference(self) -> bool:
        """Whether there is a second frame or a position."""
        return self.frame2 is not None or self.position is not None

    @property
    def holonomic(self) -> bool:
        """True with all rows or fixed axes; if axes turn, errors of rows left out become errors of the others."""
        return self.upright or len(self.rows) == self.most

    def bodies(self, motions: LinkMotions) -> tuple[BodyRows, ...]:
        """K: each point's velocity from that of its link, in the axes of the rows."""
        first, second = self.ends(motions.model)
        rows = [] if first.link == WORLD else [BodyRows(first.link, self.first_rows(motions))]
        if second.link != WORLD:
            R, _ = self.second_link(motions)
            K = np.block([[R, -R @ skew(second.placement.p)], [np.zeros((3, 3)), R]])
            rows.append(BodyRows(second.link, -self.along_rows(motions, K)))
        return tuple(rows)

    def velocity_product(self, motions: LinkMotions) -> Traced:
        """Differences to spatial accelerations: ω × v of each point, ω₁ × ω₂ for angular rows that turn with ω₁.

        Minus the acceleration of a moving reference.
        """
        v_1, w_1 = self.local_velocity(motions)
        linear, angular = np.cross(w_1, v_1), np.zeros(3)
        _, second = self.ends(motions.model)
        if second.link != WORLD:
            R, _ = self.second_link(motions)
            v_2, w_2 = self.second_velocity(motions)
            linear = linear - R @ np.cross(w_2, v_2)
            angular = np.cross(w_1, R @ w_2)
        if isinstance(self.position, MovingReference):
            R, _ = self.in_world(motions)
            linear = linear - R.T @ self._moving(motions).acceleration
        return self.along_rows(motions, np.concatenate([linear, angular]))

    def reference_velocity(self, motions: LinkMotions) -> Traced:
        """Rᵀ ṗ of a moving reference, in the axes of the rows."""
        if not isinstance(self.position, MovingReference):
            return None
        R, _ = self.in_world(motions)
        return self.along_rows(motions, R.T @ self._moving(motions).velocity)

    def position_error(self, motions: LinkMotions) -> Traced:
        """Rᵀ (p - p₂), or p - p₂ in the world's axes."""
        _, second = self.ends(motions.model)
        if self.frame2 is not None and not (self.upright and second.link == WORLD):
            _, p = self.second_frame(motions)
            return self.along_rows(motions, -p)
        R, p = self.in_world(motions)
        if isinstance(self.position, MovingReference):
            target = self._moving(motions).position
        else:
            target = np.array(second.placement.p if self.frame2 is not None else self.position)
        return self.select_rows(p - target if self.upright else R.T @ (p - target))

    def _moving(self, motions: LinkMotions) -> MovingPoint:
        result: MovingPoint = self.position.point(self.time_in(motions, self.position.moves))
        return result
