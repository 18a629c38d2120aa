"""Planar motion in x and y: SE(2)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.model.motions.motion import JointMotion, register_motion
from delassus.model.motions.moves import Move, Shift, Turn
from delassus.spatial.placements import placement_exp


@dataclass(frozen=True)
class PlanarMotion(JointMotion):
    """Coordinates (x, y, angle) [m, rad]; velocities (vx, vy, ω) in the axes of the moving body."""

    name = "planar"
    directions = (0, 1, 5)
    is_euclidean = False
    body_axes = True
    spread = (1.0, 1.0, math.pi)

    def moves(self, x: Sequence[Any], pitch: Any) -> tuple[Move, ...]:
        """A turn, then a shift."""
        return Turn(x[2]), Shift(np.stack([x[0], x[1], 0.0]))

    def integrate(self, q: Any, v: Any) -> Any:
        """The exponential of SE(2)."""
        _, displacement = placement_exp(np.stack([v[0], v[1], 0.0, 0.0, 0.0, v[2]]))
        return np.concatenate([q[:2] + _rotate_plane(q[2], displacement), q[2:] + v[2:]])

    def rates(self, q: Any, v: Any) -> Any:
        """The linear velocity, turned."""
        return np.concatenate([_rotate_plane(q[2], v), v[2:]])

    def difference(self, q0: Any, q1: Any) -> Any:
        """The logarithm of SE(2), with the smaller angle."""
        return _log(_rotate_plane(-q0[2], q1[:2] - q0[:2]), _wrap_angle(q1[2] - q0[2]))

    def stretch(self, rest: Any, q: Any) -> Any:
        """The way from the rest in the axes of the body, and the angle."""
        c, s = np.cos(q[2]), np.sin(q[2])
        x, y = q[0] - rest[0], q[1] - rest[1]
        return np.stack([c * x + s * y, c * y - s * x, q[2] - rest[2]])

    def turning_rates(self, v: Any) -> Any:
        """(ω vy, -ω vx)."""
        return np.stack([v[2] * v[1], -v[2] * v[0]])

    def step_straight(self, q: Any, v: Any, step: Any) -> tuple[Any, Any]:
        """The shift turned by the angle at the beginning, the velocity turned back by how much it grows."""
        c, s = np.cos(q[2]), np.sin(q[2])
        position = np.stack([q[0] + c * step[0] - s * step[1], q[1] + s * step[0] + c * step[1]])
        c, s = np.cos(step[2]), np.sin(step[2])
        return position, np.stack([c * v[0] + s * v[1], c * v[1] - s * v[0]])


PLANAR = register_motion(PlanarMotion())


def _rotate_plane(angle: Any, p: Any) -> Any:
    """The first two components of p, rotated by an angle."""
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([c * p[0] - s * p[1], s * p[0] + c * p[1]])


def _wrap_angle(angle: Any) -> Any:
    """The angle in [-π, π], unchanged if it is there already."""
    return np.where(abs(angle) <= math.pi, angle, np.arctan2(np.sin(angle), np.cos(angle)))


def _log(p: Any, angle: Any) -> Any:
    """The velocity (vx, vy, ω) that reaches (p, angle) in unit time: V⁻¹ p with V⁻¹ = [a, ω/2; -ω/2, a]."""
    half = 0.5 * angle
    is_small = abs(angle) < 1e-3
    safe = np.where(is_small, 1.0, half)
    a = np.where(is_small, 1.0 - half * half / 3.0, safe * np.cos(safe) / np.sin(safe))
    return np.stack([a * p[0] + half * p[1], a * p[1] - half * p[0], angle])
