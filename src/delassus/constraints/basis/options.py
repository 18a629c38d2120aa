"""Options that constraints share; None leaves the default of a constraint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from delassus.common.options import Options


@dataclass(frozen=True, eq=False)
class RowResponse(Options):
    """What rows ask for and how they give way, each one number for all rows or one per row.

    Attributes:
        acceleration: Desired acceleration [m/s², rad/s²].
        position_gain: Pull towards the reference [1/s²].
        velocity_gain: Pull towards rest [1/s]; 2 √position_gain is critically damped.
        compliance: Acceleration that the row gives way with, per unit of its force [1/kg, 1/(kg·m²)].

    >>> dl.constraints.RowResponse(velocity_gain=20.0).velocity_gain
    20.0
    """

    acceleration: Any = None
    position_gain: Any = None
    velocity_gain: Any = None
    compliance: Any = None


@dataclass(frozen=True, eq=False)
class FramePlacements(Options):
    """Where the frames of a constraint are in those that it names.

    Attributes:
        placement: The constraint's frame in the named one, a `Placement`.
        placement2: The constraint's second frame in `frame2`, or in the world.

    >>> dl.constraints.FramePlacements(placement=dl.Placement.of(p=(0.0, 0.0, 0.1))).placement.p
    array([0. , 0. , 0.1])
    """

    placement: Any = None
    placement2: Any = None
