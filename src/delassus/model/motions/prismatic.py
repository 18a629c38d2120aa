"""Translation along z."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.model.motions.motion import JointMotion, register_motion
from delassus.model.motions.moves import Move, Shift


@dataclass(frozen=True)
class PrismaticMotion(JointMotion):
    """Along z by a length [m]."""

    name = "prismatic"
    directions = (2,)

    def moves(self, x: Sequence[Any], pitch: Any) -> tuple[Move, ...]:
        """The frame moves by a shift along z [m]."""
        return (Shift(np.stack([0.0, 0.0, x[0]])),)


PRISMATIC = register_motion(PrismaticMotion())
