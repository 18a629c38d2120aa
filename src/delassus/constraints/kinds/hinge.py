"""A hinge that closes a loop: two frames share a point and an axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.common.checks import one_of
from delassus.common.options import accept_groups
from delassus.common.types import Traced
from delassus.constraints.basis.constraint import ConstraintError
from delassus.constraints.basis.frame_constraint import ROW_NAMES
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.basis.options import FramePlacements, RowResponse
from delassus.constraints.kinds.point import Point


@accept_groups("frame frame2 * axis position rows name", response=RowResponse(), placements=FramePlacements())
@dataclass(frozen=True, kw_only=True)
class Hinge(Point):
    """Two frames share their origin and one axis: 5 rows, x, y, z and the rotations about the other axes.

    `axis` is the shared axis, "x", "y" or "z". The first rows are those of `Point`; the velocity of the others is Rᵀ (ω
    - ω₂) and their force the moment [N·m] on the body of the first frame, in its axes. Their error has the direction a₂
    × a and the length 2 sin(θ/2), θ the angle between the axes: it does not change with full turns about the axis, and
    is largest for antiparallel axes. `rows` selects some of the five.

    >>> dl.Mechanism(dl.load("four_bar"), dl.Hinge("coupler_end", "rocker_end", axis="y"), model_constraints=False).m
    5
    """

    rows: Any = None
    axis: str = "z"

    def __post_init__(self) -> None:
        one_of(f"axis of {self.label!r}", self.axis, ("x", "y", "z"))
        if self.axes != "frame":
            raise ConstraintError(
                f"the hinge {self.label!r} has axes={self.axes!r}; its rows are perpendicular to its own axis, which "
                "turns with its frame. Omit axes, or use a Point or a Weld.",
                code="conflicting-arguments",
            )
        free = f"r{self.axis}"
        if self.rows is None:
            object.__setattr__(self, "rows", tuple(name for name in ROW_NAMES if name != free))
        super().__post_init__()
        if ROW_NAMES.index(free) in self.rows:
            raise ConstraintError(
                f"the hinge {self.label!r} turns about its {self.axis} axis, so it has no row {free!r}: omit it, "
                "choose another axis, or use a Weld.",
                code="conflicting-arguments",
            )
        if self.position is not None:
            raise ConstraintError(
                f"the hinge {self.label!r} has a position, which does not define its axis; pass frame2 and placement2.",
                code="conflicting-arguments",
            )

    @property
    def most(self) -> int:
        """Six, including the free one."""
        return 6

    @property
    def holonomic(self) -> bool:
        """True with all five rows."""
        return len(self.rows) == 5

    def position_error(self, motions: LinkMotions) -> Traced:
        """Rᵀ (p - p₂), and for the axes a₂ × a, whose length sin θ becomes 2 sin(θ/2)."""
        R, p = self.second_frame(motions)
        k = "xyz".index(self.axis)
        axis_product, cosine = np.cross(R[:, k], np.eye(3)[k]), R[k, k]
        sine2 = axis_product @ axis_product
        parallel, is_obtuse = sine2 < 1e-300, cosine < 0.0
        # (2 sin(θ/2) / sin θ)²; beyond 90°, 1 + cos θ would lose digits by cancellation
        stretch2 = np.where(
            is_obtuse,
            2.0 * (1.0 - cosine) / np.where(parallel, 1.0, sine2),
            2.0 / (1.0 + np.where(is_obtuse, 0.0, cosine)),
        )
        opposite = parallel & is_obtuse  # antiparallel: any direction perpendicular to the axes will do
        turn = np.where(opposite, 2.0 * np.eye(3)[k - 1], np.sqrt(stretch2) * axis_product)
        return self.select_rows(np.concatenate([-p, turn]))
