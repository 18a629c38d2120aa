"""A rod of fixed length between two points: a strut, a link without inertia, a taut cable."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.common.checks import Range, number_in_range
from delassus.common.options import accept_groups
from delassus.common.types import Traced
from delassus.constraints.basis.constraint import BodyRows
from delassus.constraints.basis.frame_constraint import FrameConstraint
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.basis.options import FramePlacements, RowResponse
from delassus.dynamics.tree.check import LEAST
from delassus.model.parts import WORLD
from delassus.spatial.rotations import skew

_SHORTEST: Final = math.sqrt(LEAST)
"""A length [m] whose square is still accurate."""

_LENGTHS: Final = Range(
    _SHORTEST,
    math.inf,
    f"more than {_SHORTEST:.0e} m, and finite; points that meet are held together by a Point",
    open_below=True,
    open_above=True,
)


class _Rod(NamedTuple):
    """From the second point to the first, in the first frame's axes: its length, direction n and velocity."""

    length: Any
    n: Any
    velocity: Any


@accept_groups("frame frame2 * length rows name", response=RowResponse(), placements=FramePlacements())
@dataclass(frozen=True, kw_only=True)
class Distance(FrameConstraint):
    """The origins of two frames stay `length` [m] apart: one row.

    Its velocity is n · (ṗ - ṗ₂), n the unit vector from the second point to the first; its force [N] acts along n and
    pushes the points apart. The points must not coincide. Without `frame2`, the second point is the origin of
    `placement2` in the world.

    >>> dl.Mechanism(dl.load("double_pendulum"), dl.Distance("tip", "world", length=1.0)).m
    1
    """

    rows: Any = (0,)
    length: float

    def __post_init__(self) -> None:
        super().__post_init__()
        length = number_in_range(f"the length of {self.label!r}", self.length, _LENGTHS)
        object.__setattr__(self, "length", length)

    @property
    def most(self) -> int:
        """The number of rows, 1."""
        return 1

    @property
    def has_reference(self) -> bool:
        """True: the length is the reference."""
        return True

    def bodies(self, motions: LinkMotions) -> tuple[BodyRows, ...]:
        """K: nᵀ on the velocities of both points."""
        first, second = self.ends(motions.model)
        n = self._rod(motions).n
        rows = []
        if first.link != WORLD:
            direction = n @ np.array(first.placement.R.T)
            rows.append(BodyRows(first.link, _on_point(direction, first.placement.p)))
        if second.link != WORLD:
            R, _ = self.second_link(motions)
            rows.append(BodyRows(second.link, _on_point(-n @ R, second.placement.p)))
        return tuple(rows)

    def velocity_product(self, motions: LinkMotions) -> Traced:
        """n · (ω × v of both points), and the centripetal part (|ṗ|² - (n·ṗ)²)/length."""
        rod = self._rod(motions)
        v_1, w_1 = self.local_velocity(motions)
        product = np.cross(w_1, v_1)
        _, second = self.ends(motions.model)
        if second.link != WORLD:
            R, _ = self.second_link(motions)
            v_2, w_2 = self.second_velocity(motions)
            product = product - R @ np.cross(w_2, v_2)
        transverse = rod.velocity - (rod.n @ rod.velocity) * rod.n
        return np.stack([rod.n @ product + transverse @ transverse / rod.length])

    def position_error(self, motions: LinkMotions) -> Traced:
        """The distance minus the length."""
        return np.stack([self._rod(motions).length - self.length])

    def _rod(self, motions: LinkMotions) -> _Rod:
        _, second = self.ends(motions.model)
        _, p = self.second_frame(motions)
        length = np.linalg.norm(p)
        velocity, _ = self.local_velocity(motions)
        if second.link != WORLD:
            R, _ = self.second_link(motions)
            velocity = velocity - R @ self.second_velocity(motions)[0]
        return _Rod(length, -p / length, velocity)


def _on_point(n: Any, p: Any) -> Any:
    """The row (1, 6) from a link's motion to the velocity of its point p along n."""
    return np.concatenate([n, -n @ np.array(skew(p))])[None, :]
