"""Obstacles fixed in the world: planes, spheres, boxes.

Each returns the gap (…) [m] of points (…, 3) and the normal (…, 3) there, away from the obstacle. Bricks collide with
it by their corners, unless it has `as_ball` or `as_box`, for which faces and edges collide, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from delassus.errors import BadArgument, warn
from delassus.geometry.batched import distances_from

Array = NDArray[np.float64]


class ObstacleError(BadArgument):
    """Invalid obstacle."""


@runtime_checkable
class Obstacle(Protocol):
    """The interface of obstacles: gap and normal at points."""

    def gap_and_normal(self, x: Array) -> tuple[Array, Array]:
        """The gaps (…) and normals (…, 3) of points (…, 3)."""


@dataclass(frozen=True)
class _OldObstacle:
    """Adapter for obstacles whose method has the old name, `touched`."""

    obstacle: Any

    def gap_and_normal(self, x: Array) -> tuple[Array, Array]:
        """The gaps (…) and normals (…, 3) of points (…, 3)."""
        gap, normal = self.obstacle.touched(x)
        return gap, normal


def as_obstacle(obstacle: Any) -> Any:
    """Return an obstacle unchanged; one with a method `touched` instead of `gap_and_normal` is adapted, with a
    warning.
    """
    if hasattr(obstacle, "gap_and_normal") or not callable(getattr(obstacle, "touched", None)):
        return obstacle
    warn(f"{type(obstacle).__name__}.touched was renamed: call the method gap_and_normal.", DeprecationWarning)
    return _OldObstacle(obstacle)


@dataclass(frozen=True)
class Plane:
    """The half-space below a plane, n · x < height [m], n the unit normal.

    >>> dl.particles.Plane(height=-1.0).height
    -1.0
    """

    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    height: float = 0.0

    def __post_init__(self) -> None:
        _three("the normal of a plane", self.normal)
        if not np.isfinite(self.height):
            raise ObstacleError(f"the height of a plane is {self.height!r}; it must be finite.", code="not-finite")
        if not np.linalg.norm(self.normal) > 0.0:
            raise ObstacleError(
                f"the normal of a plane is {self.normal}; it must be a direction, such as (0, 0, 1).",
                code="zero-direction",
            )

    def gap_and_normal(self, x: Array) -> tuple[Array, Array]:
        """Gaps and normals."""
        n = np.asarray(self.normal, float) / np.linalg.norm(self.normal)
        return x @ n - self.height, np.broadcast_to(n, x.shape)


@dataclass(frozen=True)
class Sphere:
    """A ball as an obstacle: center and radius [m].

    >>> dl.particles.Sphere((0.0, 0.0, 0.0), 0.3).radius
    0.3
    """

    center: tuple[float, float, float]
    radius: float

    def __post_init__(self) -> None:
        _three("the center of a sphere", self.center)
        if not 0.0 < self.radius < np.inf:
            raise ObstacleError(
                f"the radius of a sphere is {self.radius!r}; it must be positive, and finite.", code="out-of-range"
            )

    def gap_and_normal(self, x: Array) -> tuple[Array, Array]:
        """Gaps and normals; at the center, the normal is up."""
        return distances_from("sphere", np.eye(3), self.center, (self.radius,), x)

    def as_ball(self) -> tuple[Array, float]:
        """Its center (3,) and radius [m]."""
        return np.asarray(self.center, float), float(self.radius)


@dataclass(frozen=True)
class Box:
    """A box with edges along the world axes, or rotated by a matrix given by its rows.

    >>> dl.particles.Box((0.0, 0.0, 0.0), (0.5, 0.5, 0.5)).half
    (0.5, 0.5, 0.5)
    """

    center: tuple[float, float, float]
    half: tuple[float, float, float]
    rotation: tuple[tuple[float, float, float], ...] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))

    def __post_init__(self) -> None:
        _three("the center of a box", self.center)
        _three("half the edges of a box", self.half)
        if not np.all(np.asarray(self.half) > 0.0):
            raise ObstacleError(f"half the edges of a box are {self.half}; they must be positive.", code="out-of-range")
        R = np.asarray(self.rotation, float)
        if R.shape != (3, 3) or not np.abs(R @ R.T - np.eye(3)).max() <= 1e-6:
            raise ObstacleError(
                f"the rotation of a box is {self.rotation}; it must be three rows of an orthogonal matrix.",
                code="not-a-rotation",
            )

    def gap_and_normal(self, x: Array) -> tuple[Array, Array]:
        """Gaps and normals: outside, to the nearest point; inside, to the nearest face."""
        return distances_from("box", self.rotation, self.center, 2.0 * np.asarray(self.half, float), x)

    def as_box(self) -> tuple[Array, Array, Array]:
        """Its center (3,) [m], its axes as columns (3, 3), and its half-extents (3,) [m]."""
        return np.asarray(self.center, float), np.asarray(self.rotation, float), np.asarray(self.half, float)


def _three(name: str, value: Any) -> None:
    """Raise an error unless these are three finite values."""
    if np.shape(value) != (3,) or not np.isfinite(np.asarray(value, float)).all():
        raise ObstacleError(f"{name} is {value!r}; it must be three finite numbers.", code="not-finite")
