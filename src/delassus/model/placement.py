"""Placements of frames and inertias of bodies: frozen data, constants."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delassus.common.checks import real_array
from delassus.common.deprecated import OldName
from delassus.errors import BadArgument

Vector: TypeAlias = tuple[float, float, float]
Matrix: TypeAlias = tuple[Vector, Vector, Vector]

ZERO: Vector = (0.0, 0.0, 0.0)
IDENTITY: Matrix = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
NOTHING: Matrix = (ZERO, ZERO, ZERO)


def vector(x: ArrayLike) -> Vector:
    """Three numbers as frozen data."""
    numbers = _numbers(x, (3,), "three numbers")
    a, b, c = numbers.tolist()
    return (a, b, c)


def matrix(A: ArrayLike) -> Matrix:
    """A 3×3 matrix as frozen data."""
    a, b, c = (vector(row) for row in _numbers(A, (3, 3), "a matrix of 3 × 3 numbers"))
    return (a, b, c)


def _numbers(x: ArrayLike, shape: tuple[int, ...], form: str) -> NDArray[np.float64]:
    numbers: NDArray[np.float64] = real_array("an argument", x, form)
    if numbers.shape != shape:
        raise PlacementError(f"an argument has shape {numbers.shape}; it must be {form}.", code="wrong-shape")
    return numbers


class PlacementError(BadArgument):
    """An invalid vector, matrix or mass."""


@dataclass(frozen=True)
class Placement:
    """The placement of a frame in another: `rotation` maps from the inner to the outer frame, `translation` [m] is its
    origin.

    >>> dl.Placement.from_xyz_rpy((1.0, 0.0, 0.0)).p
    array([1., 0., 0.])
    """

    rotation: Matrix = IDENTITY
    translation: Vector = ZERO

    @classmethod
    def of(cls, R: ArrayLike = IDENTITY, p: ArrayLike = ZERO) -> Placement:
        """Create from arrays or sequences, checking shapes."""
        return cls(matrix(R), vector(p))

    @classmethod
    def from_xyz_rpy(cls, xyz: ArrayLike = ZERO, rpy: ArrayLike = ZERO) -> Placement:
        """From a translation [m] and roll, pitch, yaw [rad] about fixed axes, as in URDF."""
        return cls.of(rotation_from_rpy(rpy), xyz)

    @classmethod
    def from_matrix(cls, T: ArrayLike) -> Placement:
        """From a homogeneous matrix (4, 4): [R p; 0 1]."""
        A = np.asarray(T, float)
        if A.shape != (4, 4):
            raise BadArgument(f"a homogeneous matrix has shape (4, 4), not {A.shape}.", code="wrong-shape")
        R = A[:3, :3]
        if not np.isfinite(A).all() or not np.allclose(A[3], (0, 0, 0, 1), rtol=0.0, atol=1e-9):
            raise BadArgument(
                f"a homogeneous matrix is finite and its last row is 0 0 0 1; this is {A.tolist()}.",
                code="not-a-rotation",
            )
        if abs(R @ R.T - np.eye(3)).max() > 1e-6 or np.linalg.det(R) < 0.0:
            raise BadArgument(
                f"the upper left of a homogeneous matrix is a rotation; this is none: {R.tolist()}.",
                code="not-a-rotation",
            )
        return cls.of(R, A[:3, 3])

    @property
    def homogeneous(self) -> NDArray[np.float64]:
        """The homogeneous matrix (4, 4): [R p; 0 1]."""
        return np.block([[self.R, self.p[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])

    @property
    def R(self) -> NDArray[np.float64]:
        """The rotation as an array (3, 3)."""
        return np.array(self.rotation)

    @property
    def p(self) -> NDArray[np.float64]:
        """The translation as an array (3,) [m]."""
        return np.array(self.translation)

    def __mul__(self, inner: Placement) -> Placement:
        return Placement.of(self.R @ inner.R, self.p + self.R @ inner.p)

    def inverse(self) -> Placement:
        """The outer frame in the inner."""
        return Placement.of(self.R.T, -self.R.T @ self.p)


def rotation_from_rpy(rpy: ArrayLike) -> NDArray[np.float64]:
    """Rz(yaw) Ry(pitch) Rx(roll); exact where an angle is 0."""
    roll, pitch, yaw = np.asarray(rpy, float).tolist()
    (cr, sr), (cp, sp), (cy, sy) = ((math.cos(a), math.sin(a)) for a in (roll, pitch, yaw))
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


HERE = Placement()
"""The placement of a frame in itself."""


@dataclass(frozen=True)
class Inertia:
    """A rigid body: mass [kg], center of mass `com` [m], `rotational` inertia about it [kg·m²], in the body's axes.

    >>> dl.model.Inertia.of(2.0, com=(0.0, 0.0, 0.1)).mass
    2.0
    """

    mass: float = 0.0
    com: Vector = ZERO
    rotational: Matrix = NOTHING

    @classmethod
    def of(cls, mass: float, com: ArrayLike = ZERO, rotational: ArrayLike = NOTHING) -> Inertia:
        """Create from arrays or sequences, checking shapes."""
        kilograms = real_array("the mass", mass, "one number [kg]")
        if kilograms.ndim:
            raise PlacementError(
                f"the mass has shape {kilograms.shape}; it must be one number [kg].", code="wrong-shape"
            )
        return cls(float(kilograms), vector(com), matrix(rotational))

    @property
    def first_moment(self) -> NDArray[np.float64]:
        """m c (3,) [kg·m]."""
        return self.mass * np.array(self.com)

    @property
    def about_origin(self) -> NDArray[np.float64]:
        """The rotational inertia (3, 3) [kg·m²] about the origin of the body's frame (parallel axes)."""
        c = np.array(self.com)
        shifted: NDArray[np.float64] = np.array(self.rotational) + self.mass * (c @ c * np.eye(3) - np.outer(c, c))
        return shifted

    def with_mass(self, mass: float) -> Inertia:
        """A body of the same shape with another density; the body must have mass."""
        return Inertia.of(mass, self.com, mass * (np.array(self.rotational) / self.mass))

    def transform(self, placement: Placement) -> Inertia:
        """The body in a frame in which its present frame has this placement."""
        R, com = placement.R, placement.p + placement.R @ np.array(self.com)
        return Inertia.of(self.mass, com, R @ np.array(self.rotational) @ R.T)

    moved = OldName("transform")

    def __add__(self, other: Inertia) -> Inertia:
        """The sum of two rigidly joined bodies, in the same frame."""
        if other.mass == 0.0 and other.rotational == NOTHING:
            return self
        if self.mass == 0.0 and self.rotational == NOTHING:
            return other
        mass = self.mass + other.mass
        if mass == 0.0:
            return Inertia.of(0.0, ZERO, np.array(self.rotational) + np.array(other.rotational))
        com = (self.mass * np.array(self.com) + other.mass * np.array(other.com)) / mass
        rotational = np.zeros((3, 3))
        for body in (self, other):
            d = np.array(body.com) - com
            rotational += np.array(body.rotational) + body.mass * (d @ d * np.eye(3) - np.outer(d, d))
        return Inertia.of(mass, com, rotational)


MASSLESS = Inertia()
