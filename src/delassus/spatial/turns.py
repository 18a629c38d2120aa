"""Rotations as a few turns about coordinate axes, the cheap way to carry vectors and inertias between frames.

Any rotation matrix is R = Rz(α) Rx(β) Rz(γ). Turning a vector about one axis takes 6 operations and turning a
matrix 16 to 23, where a product with a full 3×3 matrix takes 15 and 75 to 90. Besides, a revolute joint about z
merges with the last turn, Rz(γ) Rz(q) = Rz(γ + q), and turns by multiples of a quarter vanish from a compiled kernel.
"""

import math
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

import delassus.numpy as np

Turn: TypeAlias = tuple[int, Any, Any]
"""Axis (0, 1, 2) and the cosine and sine of the angle."""


def zxz(R: NDArray[numpy.float64]) -> tuple[Turn, Turn, Turn]:
    """The turns (Rz(α), Rx(β), Rz(γ)) whose product is a constant rotation R; γ = 0 where β is 0 or π.

    Cosines and sines are read off the matrix, so those of a rotation by quarters are exactly 0 and ±1.
    """
    sin_beta = math.hypot(R[0, 2], R[1, 2])
    if sin_beta < 1e-15:
        return (2, float(R[0, 0]), float(R[1, 0])), (0, math.copysign(1.0, R[2, 2]), 0.0), (2, 1.0, 0.0)
    alpha = (2, float(-R[1, 2] / sin_beta), float(R[0, 2] / sin_beta))
    gamma = (2, float(R[2, 1] / sin_beta), float(R[2, 0] / sin_beta))
    return alpha, (0, float(R[2, 2]), sin_beta), gamma


def turn_about_z(angle: Any, first: Turn) -> Turn:
    """Rz(angle) after a constant turn `first` about z, as one turn."""
    _, c, s = first
    if 0.0 in (c, s):  # a quarter turn: cosine and sine change places and signs, at no cost
        cos, sin = np.cos(angle), np.sin(angle)
        return 2, c * cos - s * sin, s * cos + c * sin
    total = angle + math.atan2(s, c)
    return 2, np.cos(total), np.sin(total)


def turn(t: Turn, x: Any) -> Any:
    """A vector (3,), turned."""
    k, c, s = t
    i, j = (k + 1) % 3, (k + 2) % 3
    y = np.array(x)
    y[i] = c * x[i] - s * x[j]
    y[j] = s * x[i] + c * x[j]
    return y


def turn_back(t: Turn, x: Any) -> Any:
    """A vector (3,), turned the other way."""
    k, c, s = t
    return turn((k, c, -s), x)


def turn_matrix(t: Turn, A: Any) -> Any:
    """R A Rᵀ for a matrix A (3, 3).

    In the plane of the turn, [a b; d e] becomes [a - s y, c y - d; c y - b, e + s y] with y = s(a - e) + c(b + d).
    """
    k, c, s = t
    i, j = (k + 1) % 3, (k + 2) % 3
    B = np.array(A)
    y = s * (A[i, i] - A[j, j]) + c * (A[i, j] + A[j, i])
    B[i, i] = A[i, i] - s * y
    B[j, j] = A[j, j] + s * y
    B[i, j] = c * y - A[j, i]
    B[j, i] = c * y - A[i, j]
    B[i, k], B[j, k] = c * A[i, k] - s * A[j, k], s * A[i, k] + c * A[j, k]
    B[k, i], B[k, j] = c * A[k, i] - s * A[k, j], s * A[k, i] + c * A[k, j]
    return B
