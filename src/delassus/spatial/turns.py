"""Rotations as a few turns about coordinate axes, the cheap way to carry vectors and inertias between frames.

Any rotation matrix is R = Rz(α) Rx(β) Rz(γ). Turning a vector about one axis takes 6 operations and turning a
matrix 16 to 23, where a product with a full 3×3 matrix takes 15 and 75 to 90. Besides, a revolute joint about z
merges with the last turn, Rz(γ) Rz(q) = Rz(γ + q), and turns by zero vanish from a compiled kernel.
"""

from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

import delassus.numpy as np

Turn: TypeAlias = tuple[int, Any, Any]
"""Axis (0, 1, 2) and the cosine and sine of the angle."""


def zxz(R: NDArray[numpy.float64]) -> tuple[float, float, float]:
    """Angles α, β, γ [rad] with R = Rz(α) Rx(β) Rz(γ); γ = 0 where β is 0 or π. Constant rotations only."""
    sin_beta = numpy.hypot(R[0, 2], R[1, 2])
    beta = numpy.arctan2(sin_beta, R[2, 2])
    if sin_beta < 1e-15:
        return float(numpy.arctan2(R[1, 0], R[0, 0])), float(beta), 0.0
    return float(numpy.arctan2(R[0, 2], -R[1, 2])), float(beta), float(numpy.arctan2(R[2, 0], R[2, 1]))


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
