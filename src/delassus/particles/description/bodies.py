"""Rigid boxes, as arrays: bricks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.compiler.host.kernel import kernel
from delassus.errors import BadArgument
from delassus.spatial.quaternions import (
    quaternion_exp,
    quaternion_multiply,
    quaternion_normalize,
    quaternion_to_rotation,
)

Array = NDArray[np.float64]

_TURNS: Final = 20
"""Largest number of Newton iterations for the angular velocities of bricks in free flight."""

_EXACT: Final = 1e-13
"""Relative error of the angular momentum at which they end."""

_GAIN: Final = 3e-3
"""Largest relative rise of the energy in a step: at conserved momentum, the energy of a brick oscillates."""


class BodiesError(BadArgument):
    """Invalid data of bodies."""


@dataclass(frozen=True, eq=False)
class Bricks:
    """Rigid boxes of uniform density.

    Attributes:
        positions: (b, 3) centers [m].
        half: (b, 3) half-extents [m].
        masses: (b,) [kg].
        orientations: (b, 4) quaternions x, y, z, w; upright by default.

    >>> bricks = dl.particles.Bricks(positions=[[0.0, 0.0, 0.1]], half=[0.1, 0.1, 0.1], masses=1.2)
    >>> bricks.moments
    array([[0.008, 0.008, 0.008]])
    """

    positions: Array
    half: Array
    masses: Array
    orientations: Array = field(default_factory=lambda: np.array([0.0, 0.0, 0.0, 1.0]))

    def __post_init__(self) -> None:
        shape = np.shape(self.positions)
        if len(shape) != 2 or shape[1] != 3:
            raise BodiesError(f"positions of the bricks has shape {shape}; it needs (b, 3).", code="wrong-shape")
        count = shape[0]
        shapes = {"positions": (count, 3), "half": (count, 3), "masses": (count,), "orientations": (count, 4)}
        for name, required in shapes.items():
            try:
                value = np.array(np.broadcast_to(np.asarray(getattr(self, name), float), required))
            except (TypeError, ValueError):
                found = np.shape(getattr(self, name))
                raise BodiesError(
                    f"{name} of the bricks has shape {found}; it needs {required}.", code="wrong-shape"
                ) from None
            if not np.isfinite(value).all():
                raise BodiesError(
                    f"{name} of brick {int(np.argwhere(~np.isfinite(value))[0][0])} is not finite.", code="not-finite"
                )
            value.flags.writeable = False
            object.__setattr__(self, name, value)
        for name in ("half", "masses"):
            value = getattr(self, name)
            if not np.all(value > 0.0):
                worst = int(np.argwhere(~(value > 0.0))[0][0])
                raise BodiesError(
                    f"{name} of brick {worst} is {np.atleast_1d(value[worst])}; it must be positive.",
                    code="out-of-range",
                )
        norm = np.linalg.norm(self.orientations, axis=1)
        if np.any(np.abs(norm - 1.0) > 1e-6):
            raise BodiesError(
                f"the quaternion of brick {int(np.argmax(np.abs(norm - 1.0)))} does not have unit length.",
                code="not-a-rotation",
            )

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def reach(self) -> Array:
        """(b,) distance of corners from centers [m]."""
        return np.asarray(np.linalg.norm(self.half, axis=1))

    @property
    def moments(self) -> Array:
        """(b, 3) principal moments of inertia [kg·m²]."""
        squares = self.half**2
        return np.asarray(self.masses[:, None] / 3.0 * (squares.sum(1, keepdims=True) - squares))


@kernel("(4)->(3,3)")
def rotations(_: Any, orientation: Any) -> Any:
    """The rotation (3, 3) of a quaternion (4,); vectorized over bricks."""
    return quaternion_to_rotation(orientation)


@kernel("(4),(3)->(4)")
def rotate_quaternion(_: Any, orientation: Any, turn: Any) -> Any:
    """A quaternion (4,) after a rotation by a vector (3,) [rad] in world axes."""
    return quaternion_normalize(quaternion_multiply(quaternion_exp(turn), orientation))


def inertias(bricks: Bricks, orientations: Array) -> Array:
    """(b, 3, 3) moments of inertia in world axes [kg·m²]."""
    R = np.asarray(rotations(None, orientations))
    return np.asarray((R * bricks.moments[:, None, :]) @ R.mT)


def coast(bricks: Bricks, orientations: Array, spin: Array, h: float, beta: float) -> tuple[Array, NDArray[np.bool_]]:
    """Angular velocities (b, 3) [rad/s] after a step without torques, and (b,) whether their angular momentum I ω is
    conserved.

    I is that of the orientation after the step, which rotates by h ((1-β) ω + β ω⁺). This is an equation for ω⁺, solved
    by Newton's method. Conserved momentum bounds the energy. For bricks that rotate too far in a step, the method fails
    or energy rises: then no energy is added, but momentum is lost.
    """
    before = inertias(bricks, orientations)
    conserved = (before @ spin[..., None])[..., 0]
    after = spin
    for _ in range(_TURNS):
        I, momentum = _rotate_inertia(bricks, orientations, spin, after, h, beta)
        if np.all(np.linalg.norm(momentum - conserved, axis=1) <= _EXACT * np.linalg.norm(conserved, axis=1)):
            break
        slope = I + h * beta * (I @ _skew(after) - _skew(momentum))
        after = after - np.linalg.solve(slope, (momentum - conserved)[..., None])[..., 0]
    _, momentum = _rotate_inertia(bricks, orientations, spin, after, h, beta)
    failed = np.linalg.norm(momentum - conserved, axis=1) > 1e-9 * np.linalg.norm(conserved, axis=1)
    had, has = np.sum(spin * conserved, 1), np.sum(after * momentum, 1)
    failed = failed | (has > (1.0 + _GAIN) * had)
    share = np.sqrt(np.minimum(1.0, had / np.where(has > 0.0, has, 1.0)))
    return np.asarray(after * np.where(failed, share, 1.0)[:, None]), ~failed


def _rotate_inertia(
    bricks: Bricks, orientations: Array, spin: Array, after: Array, h: float, beta: float
) -> tuple[Array, Array]:
    """Moments of inertia (b, 3, 3) at the end of a step, and I ω⁺ (b, 3)."""
    I = inertias(bricks, np.asarray(rotate_quaternion(None, orientations, h * (spin + beta * (after - spin)))))
    return I, (I @ after[..., None])[..., 0]


def _skew(w: Array) -> Array:
    """(b, 3, 3) with [w]× u = w × u."""
    return np.asarray(np.cross(np.eye(3), w[:, None, :]))
