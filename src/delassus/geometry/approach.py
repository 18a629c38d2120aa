"""A bound on the approach of two shapes in a step along a direction: with a larger gap, they cannot touch.

In a step, a point r of the first shape, relative to its center, moves by d + θ × r relative to the second shape, where
d is the displacement of the center and θ the rotation. Along a unit vector n from the second shape to the first, the
gap decreases by at most

    -n · d + max over r of r · (n × θ)

The maximum is over a capsule or box around the shape. Legs mostly move parallel to their neighbors, so bounds by speeds
alone are several times larger: 120 mm on a quadruped with fast legs, and all pairs within this distance would enter the
narrow phase.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.geometry.shapes.distances import norm


class Approach(NamedTuple):
    """The motion of a shape relative to another one in a step, to first order.

    Attributes:
        way: (3,) displacement [m] of the center of a capsule around the shape; None if nothing moves.
        turn: (3,) rotation [rad].
        half: (3,) half of the capsule's axis [m].
        radius: Radius of the capsule [m].
        margin: Gap [m] below which shapes at rest are near.
    """

    way: Any
    turn: Any
    half: Any
    radius: Any
    margin: Any

    def reach(self, n: Any) -> Any:
        """The gap [m] along a unit vector (3,), from the other shape to this one, below which they are near."""
        if self.way is None:
            return self.margin
        arm = np.cross(n, self.turn)
        closing = np.abs(arm @ self.half) + norm(arm) * self.radius - n @ self.way
        return self.margin + np.maximum(closing, 0.0)

    def reversed(self) -> Approach:
        """The motion of the other shape relative to this one, about the same center."""
        return self if self.way is None else self._replace(way=-self.way, turn=-self.turn)


def displacement(motion: Any, arm: Any) -> Any:
    """The displacement (3,) [m] of a point at an arm (3,) from a center, for a motion (6,) about that center."""
    return motion[:3] + np.cross(motion[3:], arm)
