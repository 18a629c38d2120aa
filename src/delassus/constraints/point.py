"""A point of the robot held in the world: a foot that does not slip, a tip that is pinned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.constraints.constraint import ConstraintError, frozen_numbers
from delassus.constraints.motions import LinkMotions
from delassus.constraints.on_frame import OnFrame
from delassus.model.placement import Vector


@dataclass(frozen=True, kw_only=True)
class Point(OnFrame):
    """The origin of a frame has the classical acceleration a*, in the frame's axes: 3 rows, x, y, z.

    J is the linear part of the frame's LOCAL Jacobian, the force is the one [N] that acts on the robot at the point,
    in the frame's axes. `rows="xz"` or `rows=(0, 2)` leaves rows out. `position` (3,) [m] is the point's reference
    in the world, for a `position_gain`; the error is Rᵀ (p - position).
    """

    rows: Any = "xyz"
    position: Vector | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.position is not None:
            numbers = frozen_numbers(f"position of {self.label!r}", self.position)
            if np.shape(numbers) != (3,):
                raise ConstraintError(f"position of {self.label!r} is {self.position!r}; it is a point (x, y, z).")
            object.__setattr__(self, "position", numbers)
        elif np.any(self.position_gain):
            raise ConstraintError(
                f"the constraint {self.label!r} has a position_gain, and no position to pull to: give "
                "position=(x, y, z), the point's place in the world."
            )

    @property
    def most(self) -> int:
        """Three."""
        return 3

    def velocity_product(self, motions: LinkMotions) -> Any:
        """ω × v: what the acceleration of a point has beyond the spatial one."""
        lin, ang = self.local_velocity(motions)
        return self.selected(np.cross(ang, lin))

    def position_error(self, motions: LinkMotions) -> Any:
        """Rᵀ (p - position)."""
        R, p = self.in_world(motions)
        return self.selected(R.T @ (p - np.array(self.position)))
