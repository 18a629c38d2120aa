"""Rows along the axes of a constraint's own frame, or along those of the world."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import delassus.numpy as np
from delassus.common.checks import one_of
from delassus.constraints.basis.frame_constraint import FrameConstraint
from delassus.constraints.basis.motions import LinkMotions

AXES: Final = ("frame", "world")


@dataclass(frozen=True, kw_only=True)
class AxisConstraint(FrameConstraint):
    """A constraint whose rows are along the axes of its first frame, or along the world's with `axes="world"`.

    In the world's axes, `rows="z"` is the vertical in any orientation of the frame. In both cases the rows refer to the
    frame's origin: the Jacobian is the frame's in LOCAL, or in LOCAL_WORLD_ALIGNED.
    """

    axes: str = "frame"

    def __post_init__(self) -> None:
        one_of(f"axes of {self.label!r}", self.axes, AXES)
        super().__post_init__()

    @property
    def upright(self) -> bool:
        """Whether rows are along the axes of the world."""
        return self.axes == "world"

    def along_rows(self, motions: LinkMotions, values: Any) -> Any:
        """The selected rows of a vector (3, …) or a pair of them (6, …) in the first frame's axes."""
        if not self.upright:
            return self.select_rows(values)
        R, _ = self.in_world(motions)
        return self.select_rows(np.concatenate([R @ values[k : k + 3] for k in range(0, len(values), 3)]))

    def first_rows(self, motions: LinkMotions) -> Any:
        """K (rows, 6) of the first link's motions; constant in the axes of a frame fixed to the link."""
        K = self.first_motion(motions.model)
        return self.along_rows(motions, K) if self.upright else K[list(self.rows)]
