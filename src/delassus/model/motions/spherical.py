"""A rotation about a point: SO(3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.model.motions.motion import JointMotion, register_motion
from delassus.model.motions.moves import Move, Rotation
from delassus.spatial.quaternions import (
    quaternion_conjugate,
    quaternion_exp,
    quaternion_log,
    quaternion_multiply,
    quaternion_normalize,
    quaternion_to_rotation,
)


@dataclass(frozen=True)
class SphericalMotion(JointMotion):
    """Coordinates are a unit quaternion (x, y, z, w), velocities the angular velocity in the body's axes [rad/s]."""

    name = "spherical"
    directions = (3, 4, 5)
    has_quaternion = True
    is_euclidean = False

    def moves(self, x: Sequence[Any], pitch: Any) -> tuple[Move, ...]:
        """The frame moves by a rotation, given as a quaternion."""
        return (Rotation(quaternion_to_rotation(np.stack(list(x)))),)

    def integrate(self, q: Any, v: Any) -> Any:
        """The exponential of SO(3)."""
        return quaternion_normalize(quaternion_multiply(q, quaternion_exp(v)))

    def rates(self, q: Any, v: Any) -> Any:
        """q (ω/2, 0)."""
        return quaternion_multiply(q, np.stack([0.5 * v[0], 0.5 * v[1], 0.5 * v[2], 0.0]))

    def difference(self, q0: Any, q1: Any) -> Any:
        """The logarithm of SO(3), the shorter way round."""
        return quaternion_log(quaternion_multiply(quaternion_conjugate(q0), q1))

    def normalize(self, q: Any) -> Any:
        """Of unit length."""
        return quaternion_normalize(q)

    def stretch(self, rest: Any, q: Any) -> Any:
        """The rotation vector from the rest."""
        return quaternion_log(quaternion_multiply(quaternion_conjugate(np.array(rest)), q))


SPHERICAL = register_motion(SphericalMotion())
