"""A frame fixed in the world or to another frame: a flat foot, a gripper on a handle, a rigid loop closure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import delassus.numpy as np
from delassus.common.options import accept_groups
from delassus.common.types import Traced
from delassus.constraints.basis.constraint import BodyRows, ConstraintError
from delassus.constraints.basis.frame_constraint import ROW_NAMES, WORLD_FRAME
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.basis.options import FramePlacements, RowResponse
from delassus.constraints.basis.reference import MovingFrame, MovingReference, is_moving
from delassus.constraints.basis.row_axes import AxisConstraint
from delassus.dynamics.tree.poses import Pair
from delassus.model.model import Model
from delassus.model.parts import WORLD
from delassus.model.placement import Placement
from delassus.spatial.motions import adjoint, motion_cross
from delassus.spatial.placements import placement_log
from delassus.spatial.rotations import rotation_log

_SAMPLES: Final = (0.0, 1.0)
"""Times [s] at which a target is checked: matrices that are no rotations would silently cause wrong forces."""


@accept_groups("frame frame2 * rows axes target name", response=RowResponse(), placements=FramePlacements())
@dataclass(frozen=True, kw_only=True)
class Weld(AxisConstraint):
    """Two frames, or a frame and the world, have the relative spatial acceleration a*: 6 rows.

    The rows x, y, z are along and rx, ry, rz about the first frame's axes. Its velocity is that of the first frame's
    body relative to the second's, both at the origin of the first frame. The force is the wrench [N, N·m] at that
    origin on the body of the first frame, linear part first, and with the opposite sign on that of the second.
    `rows=("x", "y", "z", "rz")` or `rows=(0, 1, 2, 5)` selects rows.

    Relative to the world, `target` is the reference of the frame: a `Placement`, or a function of time that returns R
    (3, 3) and p (3,). A `position_gain` needs one. The error is the twist from the second frame to the first,
    log(second⁻¹ first).

    With `axes="world"`, rows are along and about the world's axes: the velocity of the frame's origin, its classical
    acceleration, and the errors p - p₂ and log(R R₂ᵀ). `rows=("z", "rx", "ry")` is then a flat foot that may slide on
    the floor and turn about the vertical.

    >>> dl.Mechanism(dl.load("double_pendulum"), dl.Weld("tip")).m
    6
    """

    rows: Any = ROW_NAMES
    target: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target is None:
            if np.any(self.position_gain) and self.frame2 is None:
                raise ConstraintError(
                    f"the constraint {self.label!r} has a position_gain but no target; pass target=Placement.of(R, p), "
                    "the reference in the world.",
                    code="missing-argument",
                )
        elif self.frame2 is not None:
            raise ConstraintError(
                f"the constraint {self.label!r} is between two frames and also has a target in the world; omit "
                "target or frame2.",
                code="conflicting-arguments",
            )
        elif not is_moving(self.target):
            self.check_placement(self.target)
        elif not isinstance(self.target, MovingReference):
            moving = MovingReference.of(self.label, "target", self.target, (3, 3), (3,))
            for time in _SAMPLES:
                R, p = moving.sample(time)
                if np.all(np.isfinite(R)) and np.all(np.isfinite(p)):
                    self.check_placement(Placement.of(R, p))
            object.__setattr__(self, "target", moving)

    @property
    def most(self) -> int:
        """The largest number of rows, 6."""
        return 6

    @property
    def has_reference(self) -> bool:
        """Whether there is a second frame or a target."""
        return self.frame2 is not None or self.target is not None

    @property
    def holonomic(self) -> bool:
        """True with all rows, or with only the rotations; errors of rows left out become errors of the others.

        In the world's axes, translations relative to the world are independent of each other, and of rotations.
        """
        turns = set(self.rows) & {3, 4, 5}
        is_decoupled = self.upright and self.frame2 in (None, WORLD_FRAME)
        return len(self.rows) == self.most or set(self.rows) == {3, 4, 5} or (is_decoupled and len(turns) in (0, 3))

    def inner(self, model: Model) -> bool:
        """True: joints that carry both bodies do not change their relative motion."""
        return True

    def bodies(self, motions: LinkMotions) -> tuple[BodyRows, ...]:
        """K: the motion of each link, transformed to the first frame."""
        first, second = self.ends(motions.model)
        rows = [] if first.link == WORLD else [BodyRows(first.link, self.first_rows(motions))]
        if second.link != WORLD:
            rows.append(BodyRows(second.link, -self.along_rows(motions, adjoint(*self.second_link(motions)))))
        return tuple(rows)

    def velocity_product(self, motions: LinkMotions) -> Traced:
        """(v₁ - v₂) × v₂ at the first frame, since the rows move with it; minus the acceleration of a moving target.

        For rows that do not turn with the frame, also ω₁ × both halves of v₁ - v₂.
        """
        _, second = self.ends(motions.model)
        v_1 = np.concatenate(self.local_velocity(motions))
        v_2, product = np.zeros(6), np.zeros(6)
        if second.link != WORLD:
            v_2 = adjoint(*self.second_link(motions)) @ np.concatenate(motions.velocity[second.link])
            product = motion_cross(v_1 - v_2, v_2)
        elif isinstance(self.target, MovingReference):
            X, target = self._target_transform(motions)
            v_2 = X @ target.velocity
            product = motion_cross(v_1 - v_2, v_2) - X @ target.acceleration
        if self.upright:
            slip = v_1 - v_2
            product = product + np.concatenate([np.cross(v_1[3:], slip[:3]), np.cross(v_1[3:], slip[3:])])
        return self.along_rows(motions, product)

    def reference_velocity(self, motions: LinkMotions) -> Traced:
        """The velocity of a moving target, transformed to the first frame."""
        if not isinstance(self.target, MovingReference):
            return None
        X, target = self._target_transform(motions)
        return self.along_rows(motions, X @ target.velocity)

    def position_error(self, motions: LinkMotions) -> Traced:
        """log(second⁻¹ first); in the world's axes p - p₂ and log(R R₂ᵀ)."""
        R, p = self._second(motions)
        if not self.upright:
            return self.select_rows(placement_log(R.T, -(R.T @ p)))
        _, second = self.ends(motions.model)
        turn = rotation_log(R.T)
        if second.link != WORLD:
            return self.along_rows(motions, np.concatenate([-p, turn]))
        R_1, p_1 = self.in_world(motions)
        return self.select_rows(np.concatenate([p_1 - self._place(motions), R_1 @ turn]))

    def _second(self, motions: LinkMotions) -> Pair:
        """Rotation and origin of the second frame, or of the target, in the first frame."""
        if self.frame2 is not None:
            return self.second_frame(motions)
        R, p = self.in_world(motions)
        if isinstance(self.target, MovingReference):
            at = self._moving(motions)
            return R.T @ at.R, R.T @ (at.p - p)
        if not isinstance(self.target, Placement):
            raise ConstraintError(f"the constraint {self.label!r} has no target.", code="missing-argument")
        return R.T @ np.array(self.target.R), R.T @ (np.array(self.target.p) - p)

    def _place(self, motions: LinkMotions) -> Any:
        """The world origin (3,) of a second frame fixed to the world, or of the target."""
        if self.frame2 is not None:
            return np.array(self.ends(motions.model)[1].placement.p)
        return self._moving(motions).p if isinstance(self.target, MovingReference) else np.array(self.target.p)

    def _target_transform(self, motions: LinkMotions) -> tuple[Any, MovingFrame]:
        """The target, and the matrix (6, 6) that transforms its motions to the first frame."""
        return adjoint(*self._second(motions)), self._moving(motions)

    def _moving(self, motions: LinkMotions) -> MovingFrame:
        result: MovingFrame = self.target.frame(self.time_in(motions, self.target.moves))
        return result
