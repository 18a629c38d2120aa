"""Planes in the world, and axes across a normal that turn with it without a jump."""

from __future__ import annotations

from typing import Any

import delassus.numpy as np


def axes_across(normal: Any) -> Any:
    """A rotation (3, 3) whose columns are t1, t2 and a unit normal: the shortest way that takes z to the normal.

    Its tangents are continuous in the normal except at -z, where t1 is x and t2 is -y.
    """
    x, y, z = normal[0], normal[1], normal[2]
    # 1 + z, without cancellation near -z
    down = z < 0.0
    across = x * x + y * y
    reach = np.where(down, across / np.where(down, 1.0 - z, 1.0), 1.0 + z)
    opposite = reach <= 1e-300
    a = np.where(opposite, 0.0, 1.0 / np.where(opposite, 1.0, reach))
    t1 = np.stack([1.0 - a * x * x, -a * x * y, -x])
    t2 = np.stack([-a * x * y, np.where(opposite, -1.0, 1.0 - a * y * y), -y])
    return np.stack([t1, t2, np.stack([x, y, z])], axis=1)


def unit(vector: Any) -> Any:
    """A vector (3,) with length 1."""
    return vector / np.sqrt(np.sum(vector * vector))
