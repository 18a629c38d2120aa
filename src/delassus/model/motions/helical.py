"""A screw motion about z."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

import delassus.numpy as np
from delassus.model.motions.motion import JointMotion, register_motion
from delassus.model.motions.moves import Move, Shift, Turn


@dataclass(frozen=True)
class HelicalMotion(JointMotion):
    """About z by an angle [rad], and along it by pitch [m/rad] times the angle."""

    name = "helical"
    directions = (5,)
    along_axes = False
    spread = (math.pi,)

    def moves(self, x: Sequence[Any], pitch: Any) -> tuple[Move, ...]:
        """A shift and a turn, which commute."""
        return Shift(np.stack([0.0, 0.0, pitch * x[0]])), Turn(x[0])

    def subspace(self, pitch: Any) -> NDArray[Any]:
        """(0, 0, pitch, 0, 0, 1)."""
        S = super().subspace(pitch)
        S[2, 0] = pitch
        return S


HELICAL = register_motion(HelicalMotion())
