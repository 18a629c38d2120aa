"""Rotation about z."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from delassus.model.motions.motion import JointMotion, register_motion
from delassus.model.motions.moves import Move, Turn


@dataclass(frozen=True)
class RevoluteMotion(JointMotion):
    """About z by an angle [rad], which is not wrapped."""

    name = "revolute"
    directions = (5,)
    spread = (math.pi,)

    def moves(self, x: Sequence[Any], pitch: Any) -> tuple[Move, ...]:
        """The frame moves by a turn about z [rad]."""
        return (Turn(x[0]),)


REVOLUTE = register_motion(RevoluteMotion())
