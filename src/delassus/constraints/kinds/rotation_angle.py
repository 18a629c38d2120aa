"""The rotation angle of a spherical joint from its reference; as a unilateral constraint, the joint limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.differentiation.derivatives import jvp
from delassus.constraints.basis.constraint import Constraint, JointRow
from delassus.constraints.basis.motions import LinkMotions
from delassus.dynamics.kinematics.manifold import coordinate_rates
from delassus.model.model import Model
from delassus.spatial.quaternions import quaternion_log

_SMALLEST: Final = 1e-12
"""Below this angle [rad] the axis is undefined."""


@dataclass(frozen=True)
class RotationAngle(Constraint):
    """The angle θ of a spherical joint's shortest rotation is `reference` [rad]. One row, θ̇ = a·ω.

    a is the axis of the rotation, the same in the axes of both bodies. `at_most(RotationAngle("neck", 0.5))` is a joint
    limit.
    """

    joint: str
    reference: float = 0.0

    @property
    def label(self) -> str:
        """The name, or that of the joint."""
        return self.name or self.joint

    @property
    def has_reference(self) -> bool:
        """True: the angle is a position."""
        return True

    def count(self, model: Model) -> int:
        """The number of rows, 1."""
        return 1

    def velocities(self, model: Model) -> tuple[int, ...]:
        """The velocities of the joint."""
        joint_slice = model.v_slice(self.joint)
        return tuple(range(joint_slice.start, joint_slice.stop))

    def joints(self, motions: LinkMotions) -> tuple[JointRow, ...]:
        """The axis of the rotation."""
        axis = self._rotation(motions.model, motions.q)[1]
        return tuple(JointRow(0, v, axis[k]) for k, v in enumerate(self.velocities(motions.model)))

    def velocity_product(self, motions: LinkMotions) -> Traced:
        """ȧ·ω, the derivative of the rate along the motion with constant ω."""
        model, v = motions.model, motions.v
        omega = v[model.v_slice(self.joint)]

        def rate(q: Any) -> Any:
            return self._rotation(model, q)[1] @ omega

        return np.stack([jvp(rate, (motions.q,), (coordinate_rates(model, motions.q, v),))[1]])

    def position_error(self, motions: LinkMotions) -> Traced:
        """θ - reference."""
        return np.stack([self._rotation(motions.model, motions.q)[0] - self.reference])

    def _rotation(self, model: Model, q: Any) -> tuple[Any, Any]:
        """The angle, and the axis (3,)."""
        vector = quaternion_log(q[model.q_slice(self.joint)])
        square = vector @ vector
        has_axis = square > _SMALLEST * _SMALLEST
        angle = np.sqrt(np.where(has_axis, square, 1.0))
        return np.where(has_axis, angle, 0.0), np.where(has_axis, vector / angle, np.array([1.0, 0.0, 0.0]))
