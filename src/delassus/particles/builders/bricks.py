"""Towers of bricks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from delassus.common.checks import check_integer
from delassus.common.types import ArrayLike
from delassus.particles.description.bodies import Bricks
from delassus.particles.description.checks import finite, positive
from delassus.particles.description.obstacles import Obstacle, Plane
from delassus.particles.description.particles import Particles

GROUND: Final = (Plane(),)


def tower(
    bricks: int = 60,
    around: int = 12,
    *,
    half: ArrayLike = (0.1, 0.05, 0.04),
    density: float = 1500.0,
    friction: float = 0.6,
    obstacles: Sequence[Obstacle] = GROUND,
    **others: Any,
) -> Particles:
    """A round tower of bricks on the ground, each course rotated by half a brick.

    Args:
        bricks: Number of bricks.
        around: Bricks per course; 1 for a pile.
        half: Half the length, depth and height of a brick [m].
        density: Mass density [kg/m³].
        friction: Coefficient of friction between bricks, and on the ground.
        obstacles: The ground.
        **others: Other arguments of `Particles`.

    >>> len(dl.particles.tower(bricks=12, around=6).bricks.masses)
    12
    """
    bricks, around = check_integer("bricks", bricks), check_integer("around", around)
    a, b, c = finite("half", half, (3,), least=0.0, above=True)
    positive(density=density)
    k = np.arange(bricks)
    course = k // around
    radius = 0.0 if around == 1 else (a * 1.02) / np.tan(np.pi / max(around, 3)) + b
    angle = 2.0 * np.pi * (k % around + 0.5 * (course % 2)) / around if around > 1 else np.zeros(bricks)
    z = c * (2 * course + 1)
    positions = np.stack([radius * np.sin(angle), -radius * np.cos(angle), z], 1)
    turns = np.stack([0.0 * angle, 0.0 * angle, np.sin(0.5 * angle), np.cos(0.5 * angle)], 1)
    boxes = Bricks(positions, np.array([a, b, c]), np.array(8.0 * a * b * c * density), turns)
    options: dict[str, Any] = {"name": "tower", "friction": friction, "obstacles": obstacles} | others
    return Particles(np.zeros((0, 3)), np.zeros(0), bricks=boxes, **options)
