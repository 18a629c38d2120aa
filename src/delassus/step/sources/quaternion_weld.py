"""MuJoCo's weld: the vector between two points, and the vector part of the relative quaternion.

Near zero the vector part is half the rotation vector. With the relative rotation e = (x, w) as a quaternion and the
relative angular velocity ω in the axes of the first frame,

    ẋ = T ω,   T = ½ (w 1 + [x]×),      ẍ = T ω̇ - ¼ ‖ω‖² x
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import delassus.numpy as np
from delassus.constraints.basis.constraint import BodyRows, Constraint
from delassus.constraints.basis.frame_constraint import ROW_NAMES, FrameConstraint
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.kinds.point import Point
from delassus.constraints.kinds.weld import Weld
from delassus.spatial.quaternions import quaternion_from_rotation
from delassus.spatial.rotations import skew


@dataclass(frozen=True, kw_only=True)
class QuaternionWeld(FrameConstraint):
    """Two frames coincide: 3 rows of positions along the world's axes, and 3 rows of the relative quaternion."""

    rows: Any = ROW_NAMES

    @property
    def most(self) -> int:
        """The largest number of rows, 6."""
        return 6

    @cached_property
    def _point(self) -> Point:
        return Point(self.frame, self.frame2, axes="world", placement=self.placement, placement2=self.placement2)

    @cached_property
    def _weld(self) -> Weld:
        return Weld(self.frame, self.frame2, placement=self.placement, placement2=self.placement2)

    def bodies(self, motions: LinkMotions) -> tuple[BodyRows, ...]:
        """K of the point, and T times that of the rotation."""
        T, _ = self._turning(motions)
        pairs = zip(self._point.bodies(motions), self._weld.bodies(motions), strict=True)
        return tuple(BodyRows(p.link, np.concatenate([p.K, T @ np.array(w.K[3:])])) for p, w in pairs)

    def velocity_product(self, motions: LinkMotions) -> Any:
        """The velocity product of the point, and of the quaternion: T times that of the rotation, minus ¼ ‖ω‖² x."""
        T, x = self._turning(motions)
        w = self._relative(motions)
        turned = T @ self._weld.velocity_product(motions)[3:] - 0.25 * np.sum(w * w) * x
        return np.concatenate([self._point.velocity_product(motions), turned])

    def position_error(self, motions: LinkMotions) -> Any:
        """The displacement between the points, and x."""
        _, x = self._turning(motions)
        return np.concatenate([self._point.position_error(motions), x])

    def _turning(self, motions: LinkMotions) -> tuple[Any, Any]:
        """T (3, 3) and x (3,)."""
        R, _ = self._weld.second_frame(motions)
        e = quaternion_from_rotation(R.T)
        return 0.5 * (e[3] * np.eye(3) + skew(e[:3])), e[:3]

    def _relative(self, motions: LinkMotions) -> Any:
        """The relative angular velocity ω (3,) [rad/s]."""
        _, w = self._weld.local_velocity(motions)
        R, _ = self._weld.second_link(motions)
        _, w_2 = self._weld.second_velocity(motions)
        return w - R @ w_2


def as_in_mujoco(constraint: Constraint) -> Constraint:
    """Replace a weld of two frames by its quaternion form; other constraints are unchanged."""
    if not (isinstance(constraint, Weld) and constraint.frame2 is not None and len(constraint.rows) == constraint.most):
        return constraint
    return QuaternionWeld(
        constraint.frame,
        constraint.frame2,
        name=constraint.name,
        placement=constraint.placement,
        placement2=constraint.placement2,
    )
