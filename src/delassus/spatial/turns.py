"""Rotations as products of rotations about coordinate axes: cheap transformations of vectors and inertias.

Any rotation matrix is R = Rz(α) Rx(β) Rz(γ). A turn about one axis takes 6 operations for a vector and 16 to 23 for a
matrix; a full 3×3 rotation takes 15 and 75 to 90. Besides, a revolute joint about z merges with the last turn,
Rz(γ) Rz(q) = Rz(γ + q), and turns by multiples of π/2 cost no operations in a compiled kernel.
"""

import math
from typing import Any, Final, TypeAlias

import numpy
from numpy.typing import NDArray

import delassus.numpy as np

Turn: TypeAlias = tuple[int, Any, Any]
"""Axis (0, 1, 2) and the cosine and sine of the angle."""


_ROUNDING: Final = 1e-15
"""Sines below this are treated as 0: a few rounding errors of the matrix elements."""


def zxz(R: NDArray[numpy.float64]) -> tuple[Turn, Turn, Turn]:
    """The turns (Rz(α), Rx(β), Rz(γ)) whose product is a constant rotation R; γ = 0 where β is 0 or π.

    Near β = 0 and β = π, α is ill-conditioned, and only α ± γ matters. Therefore γ is computed from the first row of
    Rz(α)ᵀ R = Rx(β) Rz(γ). If it were computed from the last row of R, as α is from the last column, the error of
    α ± γ would be 1e-16/sin β.

    Cosines and sines come from matrix elements. Those of rotations by multiples of π/2 are exactly 0 and ±1.
    """
    sin_beta = math.hypot(R[0, 2], R[1, 2])
    if sin_beta < _ROUNDING:
        return _turn(2, R[0, 0], R[1, 0]), (0, math.copysign(1.0, R[2, 2]), 0.0), (2, 1.0, 0.0)
    _, ca, sa = alpha = _turn(2, -R[1, 2], R[0, 2])
    cos_gamma = _zero_with(R[2, 1], ca * R[0, 0] + sa * R[1, 0])
    sin_gamma = _zero_with(R[2, 0], -ca * R[0, 1] - sa * R[1, 1])
    return alpha, _turn(0, R[2, 2], sin_beta), _turn(2, cos_gamma, sin_gamma)


def _zero_with(multiple: float, x: float) -> float:
    """x, or 0 if a multiple of x is exactly 0 and x is of the order of rounding errors."""
    return 0.0 if multiple == 0.0 and abs(x) < _ROUNDING else x


def _turn(axis: int, c: float, s: float) -> Turn:
    """The turn whose cosine and sine are proportional to c and s."""
    length = math.hypot(c, s)
    return axis, float(c / length) + 0.0, float(s / length) + 0.0


def turn_about_z(angle: Any, first: Turn) -> Turn:
    """Rz(angle) after a constant turn `first` about z, as one turn.

    The sum of both angles is rounded once. The error is at most 5e-16 for angles within 2π; for larger ones it is half
    the rounding unit of the angle.
    """
    _, c, s = first
    if 0.0 in (c, s):  # a multiple of π/2: cosine and sine are swapped or negated, without operations
        cos, sin = np.cos(angle), np.sin(angle)
        return 2, c * cos - s * sin, s * cos + c * sin
    total = angle + math.atan2(s, c)
    return 2, np.cos(total), np.sin(total)


def turn(t: Turn, x: Any) -> Any:
    """Rotate a vector (3,) by a turn."""
    k, c, s = t
    i, j = (k + 1) % 3, (k + 2) % 3
    y = np.array(x)
    y[i] = c * x[i] - s * x[j]
    y[j] = s * x[i] + c * x[j]
    return y


def turn_back(t: Turn, x: Any) -> Any:
    """Rotate a vector (3,) by the inverse of a turn."""
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
