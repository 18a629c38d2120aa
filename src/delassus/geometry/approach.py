"""How far two shapes may approach each other in a step along a direction: the gap from which on they cannot touch.

A point r of the first shape, measured from a center of it, moves relative to the second one by d + θ × r in a step,
with the displacement d of the center and the rotation θ. Along a unit vector n from the second shape to the first, the
gap shrinks by no more than

    -n · d + max over r of r · (n × θ),

for which a capsule around the shape or a box is enough. Most motion of quick legs is along the gaps to their neighbors,
so that bounds by speeds alone are several times that: on a quadruped with quick legs they were 120 mm, which passed
pairs that were as far apart.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.geometry.shapes.distances import norm


class Approach(NamedTuple):
    """The motion of a shape relative to another one in a step, to first order.

    Attributes:
        way: (3,) the displacement [m] of the center of a capsule around the shape; None if nothing moves.
        turn: (3,) the rotation [rad].
        half: (3,) half of the capsule's axis [m].
        radius: Of the capsule [m].
        margin: The gap [m] below which shapes that stand still are near.
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
    """How far (3,) [m] a motion (6,) about a center moves a point at an arm (3,) from it."""
    return motion[:3] + np.cross(motion[3:], arm)
