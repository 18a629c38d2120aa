"""Translation in space."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.model.motions.motion import JointMotion, register_motion
from delassus.model.motions.moves import Move, Shift


@dataclass(frozen=True)
class TranslationMotion(JointMotion):
    """Along x, y and z [m]."""

    name = "translation"
    directions = (0, 1, 2)

    def moves(self, x: Sequence[Any], pitch: Any) -> tuple[Move, ...]:
        """The frame moves by a shift (x, y, z) [m]."""
        return (Shift(np.stack(list(x))),)


TRANSLATION = register_motion(TranslationMotion())
