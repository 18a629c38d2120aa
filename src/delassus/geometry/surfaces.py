"""The ground in kernels: the height of a point above it, and the normal.

A plane is the set of points x with normal · x = height; height fields are in `fields`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Surface = Callable[[Any], tuple[Any, Any]]
"""The distance [m] of a point (3,) above the ground, negative below it, and the ground's normal (3,) there."""


def plane_surface(normal: Any, height: Any) -> Surface:
    """A plane with a unit normal (3,)."""
    return lambda x: (normal @ x - height, normal)
