"""Free motion in space: SE(3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.model.motions.motion import JointMotion, register_motion
from delassus.model.motions.moves import Move, Shift
from delassus.model.motions.spherical import SPHERICAL
from delassus.spatial.placements import placement_exp, placement_log
from delassus.spatial.quaternions import (
    quaternion_conjugate,
    quaternion_exp,
    quaternion_multiply,
    quaternion_rotate,
    quaternion_to_rotation,
)


@dataclass(frozen=True)
class FreeMotion(JointMotion):
    """Coordinates (translation [m], quaternion); velocities (linear, angular) in the body's axes [m/s, rad/s]."""

    name = "free"
    directions = (0, 1, 2, 3, 4, 5)
    has_quaternion = True
    is_euclidean = False
    body_axes = True

    def moves(self, x: Sequence[Any], pitch: Any) -> tuple[Move, ...]:
        """A rotation, then a shift."""
        return *SPHERICAL.moves(x[3:], pitch), Shift(np.stack(list(x[:3])))

    def integrate(self, q: Any, v: Any) -> Any:
        """The exponential of SE(3)."""
        _, displacement = placement_exp(v)
        quaternion = SPHERICAL.integrate(q[3:], v[3:])
        return np.concatenate([q[:3] + quaternion_rotate(q[3:], displacement), quaternion])

    def rates(self, q: Any, v: Any) -> Any:
        """The linear velocity in the outer axes, and that of the quaternion."""
        return np.concatenate([quaternion_rotate(q[3:], v[:3]), SPHERICAL.rates(q[3:], v[3:])])

    def difference(self, q0: Any, q1: Any) -> Any:
        """The logarithm of SE(3), the shorter way round."""
        inverse_rotation = quaternion_conjugate(q0[3:])
        relative = quaternion_multiply(inverse_rotation, q1[3:])
        return placement_log(quaternion_to_rotation(relative), quaternion_rotate(inverse_rotation, q1[:3] - q0[:3]))

    def normalize(self, q: Any) -> Any:
        """With a quaternion of unit length."""
        return np.concatenate([q[:3], SPHERICAL.normalize(q[3:])])

    def stretch(self, rest: Any, q: Any) -> Any:
        """The way from the rest in the axes of the body, and the rotation vector."""
        translation = quaternion_rotate(quaternion_conjugate(q[3:]), q[:3] - rest[:3])
        return np.concatenate([translation, SPHERICAL.stretch(rest[3:], q[3:])])

    def turning_rates(self, v: Any) -> Any:
        """The rate -ω × v of a velocity that is constant in the world, in turning axes."""
        return -np.cross(v[3:], v[:3])

    def step_straight(self, q: Any, v: Any, step: Any) -> tuple[Any, Any]:
        """The shift rotated as at the beginning, the velocity rotated back by how much the body turns."""
        by = quaternion_exp(step[3:])
        position = q[:3] + quaternion_rotate(q[3:], step[:3])
        return position, quaternion_rotate(quaternion_conjugate(by), v[:3])


FREE = register_motion(FreeMotion())
