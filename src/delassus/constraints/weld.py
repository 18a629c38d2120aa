"""A frame of the robot held in the world: a flat foot, a gripper on a handle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.constraints.constraint import ConstraintError
from delassus.constraints.motions import LinkMotions
from delassus.constraints.on_frame import ROW_NAMES, OnFrame
from delassus.model.placement import Placement
from delassus.spatial.placements import placement_log


@dataclass(frozen=True, kw_only=True)
class Weld(OnFrame):
    """A frame has the spatial acceleration a*, in its own axes: 6 rows, x, y, z along and rx, ry, rz about its axes.

    J is the frame's LOCAL Jacobian, the force is the wrench [N, N·m] that acts on the robot at the frame, linear part
    first. `rows=("x", "y", "z", "rz")` or `rows=(0, 1, 2, 5)` leaves rows out. `target` is the frame's reference
    placement in the world, for a `position_gain`; the error is the twist from it to the frame, log(target⁻¹ frame).
    """

    rows: Any = ROW_NAMES
    target: Placement | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target is not None:
            self.check_placement(self.target)
        elif np.any(self.position_gain):
            raise ConstraintError(
                f"the constraint {self.label!r} has a position_gain, and no placement to pull to: give "
                "target=Placement.of(R, p), the frame's place in the world."
            )

    @property
    def most(self) -> int:
        """Six."""
        return 6

    def position_error(self, motions: LinkMotions) -> Any:
        """log(target⁻¹ frame)."""
        if self.target is None:
            raise ConstraintError(f"the constraint {self.label!r} has no target.")
        R, p = self.in_world(motions)
        R_0 = self.target.R
        return self.selected(placement_log(R_0.T @ R, R_0.T @ (p - self.target.p)))
