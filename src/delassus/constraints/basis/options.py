"""Options shared by constraints; None keeps the default of a constraint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from delassus.common.options import Options


@dataclass(frozen=True, eq=False)
class RowResponse(Options):
    """Targets, gains and compliance of rows, each one value for all rows or one per row.

    Attributes:
        acceleration: Target acceleration [m/s², rad/s²].
        position_gain: Feedback of the position error [1/s²].
        velocity_gain: Feedback of the velocity error [1/s]; 2 √position_gain is critically damped.
        compliance: Acceleration of the row per unit of its force [1/kg, 1/(kg·m²)].

    >>> dl.constraints.RowResponse(velocity_gain=20.0).velocity_gain
    20.0
    """

    acceleration: Any = None
    position_gain: Any = None
    velocity_gain: Any = None
    compliance: Any = None


@dataclass(frozen=True, eq=False)
class FramePlacements(Options):
    """Placements of a constraint's frames relative to the frames that it names.

    Attributes:
        placement: The constraint's frame relative to `frame`, a `Placement`.
        placement2: The constraint's second frame relative to `frame2`, or to the world.

    >>> dl.constraints.FramePlacements(placement=dl.Placement.of(p=(0.0, 0.0, 0.1))).placement.p
    array([0. , 0. , 0.1])
    """

    placement: Any = None
    placement2: Any = None
